//! The doors that `--door` names, and what each says it can do.

use crate::failure::Failure;
use hookgate_agents::agent::Agent;
use hookgate_agents::table;
use hookgate_core::define::nearest;
use hookgate_core::wish::{Can, Spot, Wish};

/// A door.
#[derive(Clone, Copy)]
pub(super) enum Door {
    /// A coding agent.
    Agent(&'static dyn Agent),
    /// One of the program's own.
    Own(&'static Own),
}

/// A door of the program.
pub(super) struct Own {
    name: &'static str,
    /// As sentences call it.
    title: &'static str,
    can: fn(Spot, Wish) -> Can,
}

static OWN: &[Own] = &[
    Own { name: "chat", title: "`hookgate chat`", can: hookgate_chat::can },
    Own { name: "gateway", title: "`hookgate gateway`", can: hookgate_server::gateway::can },
    #[cfg(unix)]
    Own { name: "mcp", title: "`hookgate mcp`", can: crate::mcp::can },
];

impl Door {
    /// The door of this name.
    pub(super) fn named(name: &str) -> Result<Door, Failure> {
        let own = || OWN.iter().find(|own| own.name == name).map(Door::Own);
        table::find(name).map(Door::Agent).or_else(own).ok_or_else(|| {
            let agents = table::ALL.iter().map(|agent| agent.name());
            let names: Vec<&str> = OWN.iter().map(|own| own.name).chain(agents).collect();
            let help = nearest(name, &names).map(|help| format!(" ({help})")).unwrap_or_default();
            Failure::new(format!("unknown door `{name}`; expected one of {}{help}", names.join(", ")))
        })
    }

    /// As sentences call it.
    pub(super) fn title(&self) -> &'static str {
        match self {
            Door::Agent(agent) => agent.title(),
            Door::Own(own) => own.title,
        }
    }

    /// What becomes there of a wish at a spot, where the hook wishes these others as well.
    pub(super) fn can(&self, spot: Spot, wish: Wish, beside: &[Wish]) -> Can {
        match self {
            Door::Agent(agent) => crate::agent::can(*agent, spot, wish, beside),
            Door::Own(own) => (own.can)(spot, wish),
        }
    }
}
