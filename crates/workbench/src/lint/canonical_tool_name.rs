//! `Bash` in the place of `exec`: an agent's own name, which other agents do not use.
//!
//! A matcher fits any name of a tool, so such a hook works with some agents and is silent with others. A condition sees
//! the canonical name in `toolName`, so there it never fits. Behind the gateway only the agent's own names are known.

use super::rule::{Notes, Rule};
use super::tool_names::{named, native, quoted};
use hookgate_core::hook::{Hook, Listens};

pub(super) const RULE: Rule = Rule {
    id: "canonical-tool-name",
    about: "an agent's own name for a tool, which others do not use",
    look: Some(look),
};

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        if let Some((field, names)) = named(hook) {
            matched(hook, field, &names, notes);
        }
        if let Listens::Point { filter, .. } = &hook.listens
            && let Some(condition) = &filter.if_expr
        {
            compared(hook, &condition.compared_tool_names(), notes);
        }
    }
}

/// The agents' own names among these whose canonical one is missing, with who uses them.
struct Own {
    names: Vec<String>,
    canonical: Vec<&'static str>,
    agents: Vec<&'static str>,
}

fn own(names: &[String]) -> Option<Own> {
    let mut own = Own { names: Vec::new(), canonical: Vec::new(), agents: Vec::new() };
    for name in names {
        let Some(native) = native(name) else { continue };
        if native.canonical.iter().any(|canonical| names.iter().any(|name| name == canonical)) {
            continue;
        }
        own.names.push(name.clone());
        for (from, into) in [(native.canonical, &mut own.canonical), (native.agents, &mut own.agents)] {
            for word in from {
                if !into.contains(&word) {
                    into.push(word);
                }
            }
        }
    }
    (!own.names.is_empty()).then_some(own)
}

fn matched(hook: &Hook, field: &str, names: &[String], notes: &mut Notes<'_>) {
    let Some(Own { names: natives, canonical, agents }) = own(names) else { return };
    let verb = if natives.len() == 1 { "is a name" } else { "are names" };
    let message = format!(
        "{} {verb} that {} {} for a tool; with other agents, and in `hookgate chat`, the hook is silent",
        quoted(&natives),
        some(&agents),
        if agents.len() == 1 { "has" } else { "have" },
    );
    let help = format!(
        "{} {} in every agent; behind `hookgate gateway`, where only an agent's own names are known, name both",
        quoted(&canonical),
        if canonical.len() == 1 { "fits it" } else { "fit them" },
    );
    notes.add(hook, field, message, &help);
}

fn compared(hook: &Hook, names: &[String], notes: &mut Notes<'_>) {
    let Some(Own { names: natives, canonical, .. }) = own(names) else { return };
    let message = format!(
        "`toolName` is the canonical name where a coding agent calls, so it is never {} there",
        quoted(&natives)
    );
    let first = natives.first().map(String::as_str).unwrap_or_default();
    let help = format!(
        "compare it with {}, or `nativeToolName` with `{first}`; behind `hookgate gateway`, where only an agent's own \
         names are known, allow both with `in`",
        quoted(&canonical)
    );
    notes.add(hook, "if_expr", message, &help);
}

/// The first three, and how many more.
fn some(titles: &[&str]) -> String {
    match titles {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        [one, other, third] => format!("{one}, {other} and {third}"),
        [one, other, third, rest @ ..] => format!("{one}, {other}, {third} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    fn matcher(matcher: &str, want: &[&str]) {
        let text = format!(
            r#"{{"event":"pre_tool_use","matcher":"{matcher}","handler":{{"type":"script","source":"x"}}}}"#
        );
        check(RULE.id, &text, want);
    }

    fn condition(condition: &str, want: &[&str]) {
        let text = format!(
            r#"{{"event":"pre_tool_use","if_expr":"{condition}","handler":{{"type":"script","source":"x"}}}}"#
        );
        check(RULE.id, &text, want);
    }

    #[test]
    fn own_names_in_matchers() {
        matcher("Bash", &["matcher: `Bash` is a name that Claude Code,"]);
        matcher("^(Bash|Write)$", &["`exec`, `write_file` fit them"]);
        matcher("run_shell_command", &["`exec` fits it"]);
        for fine in ["exec", "exec|Bash", "write_file", "my_tool", "mcp__.*", "task", "Bash.*"] {
            matcher(fine, &[]);
        }
        check(RULE.id, r#"{"target":"tool","tools":["WebFetch"]}"#, &["tools: `WebFetch`"]);
        check(RULE.id, r#"{"target":"tool","tools":["WebFetch","fetch_page"]}"#, &[]);
    }

    #[test]
    fn own_names_in_conditions() {
        condition("tool_name == 'Bash'", &["if_expr: `toolName` is the canonical name"]);
        condition("toolName in ['Write', 'Edit']", &["never `Write`, `Edit` there"]);
        for fine in ["toolName in ['exec', 'Bash']", "nativeToolName == 'Bash'", "toolInput.kind == 'Bash'"] {
            condition(fine, &[]);
        }
    }
}
