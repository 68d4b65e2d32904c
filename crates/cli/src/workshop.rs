//! The handlers that lifecycle hooks can run in this program: one line a kind.

use hookgate_core::handler::HandlerType;
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::http::{self, Network};
use hookgate_handlers::workshop::Workshop;
use std::sync::OnceLock;

/// Makes the workshop. Nothing is started until a hook needs it.
pub(crate) fn workshop() -> Workshop {
    let network: OnceLock<Result<Network, String>> = OnceLock::new();
    Workshop::empty().with(HandlerType::Command, command::maker(Commands::default())).with(
        HandlerType::Http,
        move |spec, folder| match network.get_or_init(Network::new) {
            Ok(network) => http::maker(network.clone())(spec, folder),
            Err(why) => Err(why.clone()),
        },
    )
}
