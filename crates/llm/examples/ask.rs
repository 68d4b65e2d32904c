//! Asks a model and shows the pieces of its answer as they arrive.
//!
//! `cargo run -p hookgate-llm --example ask -- openai-chat http://127.0.0.1:8080 some-model "Say hi."`
//! (without arguments: the scripted demonstration)

use std::io::Write;

use futures_util::StreamExt;
use hookgate_llm::{Client, Message, Model, Provider, Request, Scripted, ToolSpec};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let model: Box<dyn Model> = match (args.next(), args.next()) {
        (Some(provider), Some(base)) => {
            let provider: Provider = provider.parse()?;
            let key = std::env::var(provider.key_env()).unwrap_or_default();
            Box::new(Client::builder(provider).base_url(base).api_key(key).build()?)
        }
        _ => Box::new(Scripted::demo()),
    };
    let name = args.next().unwrap_or_default();
    let prompt = args.next().unwrap_or_else(|| "hello".into());
    let parameters = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    let shell = ToolSpec { name: "shell".into(), description: "Runs a command.".into(), parameters };
    let (messages, tools) = (vec![Message::user(prompt)], vec![shell]);
    let mut stream = model.stream(Request { model: name, messages, tools, ..Request::default() }).await?;
    while let Some(delta) = stream.next().await {
        writeln!(std::io::stdout(), "{:?}", delta?)?;
    }
    Ok(())
}
