//! What a tool is, and the tools of one service.

use futures_util::future::BoxFuture;
use hookgate_llm::ToolSpec;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Something that the model may call.
pub trait Tool: Send + Sync {
    /// Name, description and parameters, as the model sees them.
    fn spec(&self) -> ToolSpec;

    /// Runs it. Text results reach the model as they are, others as JSON. Dropping the future must stop it.
    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>>;
}

/// Why a tool gave no result; the model reads this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// The tools of a service, in the order in which they were added.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<(ToolSpec, Arc<dyn Tool>)>,
}

impl Toolbox {
    /// Adds a tool; one of the same name is replaced.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        let spec = tool.spec();
        self.tools.retain(|(other, _)| other.name != spec.name);
        self.tools.push((spec, tool));
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|(spec, _)| spec.clone()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<dyn Tool>, ToolError> {
        let found = self.tools.iter().find(|(spec, _)| spec.name == name);
        found.map(|(_, tool)| tool.clone()).ok_or_else(|| {
            let names: Vec<&str> = self.tools.iter().map(|(spec, _)| spec.name.as_str()).collect();
            ToolError(match names.as_slice() {
                [] => format!("unknown tool `{name}`; there are no tools"),
                names => format!("unknown tool `{name}`; there are {}", names.join(", ")),
            })
        })
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.tools.iter().map(|(spec, _)| &spec.name)).finish()
    }
}

/// The arguments that a model wrote. No text at all means no arguments.
pub(crate) fn parse_arguments(text: &str) -> Result<Map<String, Value>, ToolError> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err(ToolError("the arguments are not a JSON object".into())),
        Err(error) => Err(ToolError(format!("the arguments are not valid JSON: {error}"))),
    }
}
