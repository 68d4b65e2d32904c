//! A gate that is never asked, because a hook before it blocks all that it would see. Only told where it is certain: the
//! first one blocks whatever comes, for everybody and every tool of the second.

use super::rule::{Notes, Rule};
use super::tool_names::named;
use hookgate_core::define::{Node, NodeValue};
use hookgate_core::handler::{CommandStart, Fallback, HandlerKind, HandlerSpec, ScriptText};
use hookgate_core::hook::{Hook, Listens, Reach, Work};
use hookgate_core::point::{Point, Stage};

pub(super) const RULE: Rule =
    Rule { id: "shadowed", about: "a gate that a hook before it leaves nothing to see", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    let walls: Vec<(usize, &&Hook)> =
        hooks.iter().enumerate().filter(|(_, hook)| blocks_always(hook, notes)).collect();
    for (at, hook) in hooks.iter().enumerate() {
        let is_gate =
            hook.listens.point().stage() == Stage::Gate && matches!(hook.work, Work::Handler { .. });
        // JSON hooks see a tool before the gate's chain begins, whatever their order
        let before = |(wall_at, wall): &&(usize, &&Hook)| {
            (*wall_at < at || matches!(wall.work, Work::Actions(_))) && *wall_at != at
        };
        let wall = walls.iter().filter(before).find(|(_, wall)| covers(wall, hook));
        if let Some((_, wall)) = wall.filter(|_| is_gate) {
            let message = format!(
                "the hook is never asked: `{}` ({}, hook {}) runs before it and blocks all that it would see",
                wall.name,
                wall.file,
                wall.index.saturating_add(1)
            );
            let help = match wall.work {
                Work::Actions(_) => "take one of them out",
                Work::Handler { .. } => "take one of them out, or give this one a higher `priority`",
            };
            notes.add(hook, "event", message, help);
        }
    }
}

/// Whether every event that the second hook would see concerns the first.
fn covers(first: &Hook, second: &Hook) -> bool {
    first.listens.point() == second.listens.point()
        && (first.reach == Reach::Global || first.reach == second.reach)
        && match (&first.listens, named(first)) {
            (_, Some((_, names))) => {
                named(second).is_some_and(|(_, seconds)| seconds.iter().all(|name| names.contains(name)))
            }
            (Listens::Point { filter, .. }, None) => filter.matcher.is_none(),
            (_, None) => true,
        }
}

/// Whether a hook blocks every event that its tool names and scope let through.
fn blocks_always(hook: &Hook, notes: &Notes<'_>) -> bool {
    match (&hook.listens, &hook.work) {
        (Listens::Tool { regex: None, .. }, Work::Actions(_)) => {
            hook.listens.point() == Point::PreToolUse && has_block(notes.written.field(hook, "actions"))
        }
        (Listens::Point { point, filter }, Work::Handler { spec, .. }) => {
            point.stage() == Stage::Gate
                && filter.regex.is_none()
                && filter.if_expr.is_none()
                && spec.on_timeout == Fallback::Block
                && spec.on_error == Fallback::Block
                && only_blocks(spec)
        }
        _ => false,
    }
}

fn has_block(actions: Option<&Node>) -> bool {
    let Some(Node { value: NodeValue::List(items), .. }) = actions else { return false };
    let is_block = |node: &Node| matches!(&node.value, NodeValue::Text(text) if text == "block");
    items.iter().any(|item| is_block(item.nearest_at("type")))
}

/// Whether the handler's text is nothing but a block: `echo … >&2; exit 2`, or a function with one return.
fn only_blocks(spec: &HandlerSpec) -> bool {
    match &spec.kind {
        HandlerKind::Command { start: CommandStart::Shell(line), .. } => {
            let mut steps = line.split([';', '\n']).map(str::trim).filter(|step| !step.is_empty()).rev();
            let branches = line.replace(">&2", "").contains(['&', '|', '(', '`', '{']);
            steps.next() == Some("exit 2") && steps.all(|step| step.starts_with("echo ")) && !branches
        }
        HandlerKind::Script { text: ScriptText::Inline(source), .. } => {
            let inside = source.trim().strip_prefix("function handle").and_then(|rest| rest.split_once('{'));
            let body = inside.map(|(_, body)| body.trim()).unwrap_or_default();
            let plain: String = body.chars().filter(|c| !matches!(c, ' ' | '"' | '\'')).collect();
            plain.strip_prefix("return{decision:block").is_some_and(|rest| rest.starts_with([',', '}']))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    const WALL: &str = r#""handler":{"type":"command","shell":"echo 'no' >&2; exit 2"}"#;
    const OTHER: &str = r#""handler":{"type":"script","source":"x"}"#;

    fn two(first: &str, second: &str, want: &[&str]) {
        check(RULE.id, &format!("[{{{first}}},{{{second}}}]"), want);
    }

    fn gate(id: &str, fields: &str, handler: &str) -> String {
        format!(r#""id":"{id}","event":"pre_tool_use"{fields},{handler}"#)
    }

    #[test]
    fn a_wall_before_a_gate() {
        let told = &["event: the hook is never asked: `wall` (hooks/a.json, hook 1)"];
        two(&gate("wall", "", WALL), &gate("b", "", OTHER), told);
        two(
            &gate("wall", r#","matcher":"exec|write_file""#, WALL),
            &gate("b", r#","matcher":"exec""#, OTHER),
            told,
        );
        let script = r#""handler":{"type":"script","source":"function handle(e) { return { decision: 'block', reason: 'no' }; }"}"#;
        two(&gate("wall", "", script), &gate("b", r#","matcher":"exec""#, OTHER), told);
        let json = r#""label":"wall","target":"tool","event":"before","tools":["exec"],"actions":[{"type":"block"}]"#;
        two(json, &gate("b", r#","matcher":"exec","priority":9"#, OTHER), told);
    }

    #[test]
    fn what_may_still_be_asked() {
        let free = |first: &str, second: &str| two(first, second, &[]);
        free(&gate("wall", r#","matcher":"exec""#, WALL), &gate("b", "", OTHER));
        free(
            &gate("wall", r#","matcher":"exec""#, WALL),
            &gate("b", r#","matcher":"exec|write_file""#, OTHER),
        );
        free(&gate("wall", r#","if_expr":"depth > 0""#, WALL), &gate("b", "", OTHER));
        free(&gate("wall", r#","on_error":"allow""#, WALL), &gate("b", "", OTHER));
        free(&gate("wall", r#","scope":"tenant","tenant":"acme""#, WALL), &gate("b", "", OTHER));
        free(&gate("wall", "", WALL), &gate("b", r#","priority":1"#, OTHER));
        let asks = r#""handler":{"type":"command","shell":"grep -q x || exit 0; exit 2"}"#;
        free(&gate("wall", "", asks), &gate("b", "", OTHER));
        free(
            &gate("wall", "", WALL),
            r#""id":"b","event":"user_prompt_submit","handler":{"type":"script","source":"x"}"#,
        );
        let json = r#""label":"wall","target":"tool","event":"before","tools":["exec"],"regex":"rm","actions":[{"type":"block"}]"#;
        free(json, &gate("b", r#","matcher":"exec""#, OTHER));
    }
}
