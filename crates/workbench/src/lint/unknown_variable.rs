//! A `{{name}}` in an action's text that is never filled there: it stays as it is written.

use super::rule::{Notes, Rule};
use hookgate_core::define::{Node, NodeValue, nearest};
use hookgate_core::event::{ChunkKind, ToolMoment};
use hookgate_core::hook::{Hook, Listens};
use hookgate_core::template::Variable;
use hookgate_core::word::Word;

pub(super) const RULE: Rule =
    Rule { id: "unknown-variable", about: "a `{{name}}` that is never filled", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        let Some(Node { value: NodeValue::List(actions), .. }) = notes.written.field(hook, "actions") else {
            continue;
        };
        let mut found = Vec::new();
        for (index, action) in actions.iter().enumerate() {
            let NodeValue::Object(entries) = &action.value else { continue };
            for entry in entries.iter().filter(|entry| matches!(entry.key.as_str(), "message" | "with")) {
                let NodeValue::Text(text) = &entry.node.value else { continue };
                let unfilled = names(text).filter(|name| !is_filled(hook, name));
                found.extend(
                    unfilled.map(|name| (format!("actions[{index}].{}", entry.key), name.to_owned())),
                );
            }
        }
        for (field, name) in found {
            let known: Vec<&str> =
                Variable::ALL.iter().map(|(name, _)| *name).filter(|name| is_filled(hook, name)).collect();
            let message = format!("nothing fills `{{{{{name}}}}}` here, so it stays as it is written");
            let help = nearest(&name, &known).unwrap_or_else(|| format!("known here: {}", known.join(", ")));
            notes.add(hook, &field, message, &help);
        }
    }
}

/// What stands in double braces and looks like a name.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{").skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once("}}")?;
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        is_name.then_some(name)
    })
}

/// Whether some event of the hook fills the variable.
fn is_filled(hook: &Hook, name: &str) -> bool {
    let Some(variable) = Variable::from_word(name) else { return false };
    let has_regex = hook.listens.regex().is_some();
    match (&hook.listens, variable) {
        (_, Variable::Label | Variable::Target) => true,
        (_, Variable::Match) => has_regex,
        (Listens::Message { .. }, Variable::Role | Variable::Content) => true,
        (Listens::Chunk { .. }, Variable::Type) => true,
        (Listens::Chunk { kinds, .. }, Variable::Text) => {
            ChunkKind::ALL.iter().any(|(_, kind)| *kind != ChunkKind::Finish && kinds.contains(*kind))
        }
        (Listens::Chunk { kinds, .. }, Variable::ToolCallId) => kinds.contains(ChunkKind::ToolCallDelta),
        (Listens::Chunk { kinds, .. }, Variable::FinishReason) => kinds.contains(ChunkKind::Finish),
        (Listens::Tool { .. }, Variable::Event | Variable::Name | Variable::Args) => true,
        (Listens::Tool { moment, .. }, Variable::Result) => *moment == ToolMoment::After,
        (Listens::Tool { moment, .. }, Variable::Error) => *moment == ToolMoment::Error,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn names_that_nothing_fills() {
        let hook = |fields: &str, message: &str, want: &[&str]| {
            let text = format!(r#"{{{fields},"actions":[{{"type":"log","message":"{message}"}}]}}"#);
            check(RULE.id, &text, want);
        };
        hook(r#""target":"chat""#, "{{contnet}}", &["actions[0].message: nothing fills `{{contnet}}` here"]);
        hook(r#""target":"chat""#, "{{contnet}}", &["did you mean `content`?"]);
        hook(r#""target":"chat""#, "{{text}} {{match}}", &["`{{text}}`", "`{{match}}`"]);
        hook(r#""target":"tool","event":"before""#, "{{result}}", &["known here: "]);
        hook(r#""target":"chat","regex":"a""#, "{{label}} {{role}}: {{content}} {{match}}", &[]);
        hook(r#""target":"tool""#, "{{name}} {{args}} {{result}}", &[]);
        hook(r#""target":"stream""#, "{{text}} {{toolCallId}} {{finishReason}} {{ not one }}", &[]);
    }
}
