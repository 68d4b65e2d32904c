//! A condition that reads a member which an event may lack, without `has()`.

use super::rule::{Notes, Rule};
use super::tool_names::{members_of, named};
use hookgate_core::expr::Condition;
use hookgate_core::hook::{Hook, Listens};
use hookgate_core::point::Point;

pub(super) const RULE: Rule =
    Rule { id: "condition-has", about: "a condition that reads what an event may lack", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        let Listens::Point { point, filter } = &hook.listens else { continue };
        let Some(condition) = &filter.if_expr else { continue };
        for path in condition.untested().iter().filter(|path| !is_there(hook, *point, condition, path)) {
            let message =
                format!("an event without `{path}` cannot answer the condition, and then the hook runs");
            let help = format!("`has({path}) && …` leaves such events out");
            notes.add(hook, "if_expr", message, &help);
        }
    }
}

/// Whether each event that the hook is meant for has the member.
fn is_there(hook: &Hook, point: Point, condition: &Condition, path: &str) -> bool {
    let Some((root, member)) = path.split_once('.') else { return false };
    let member = member.split('.').next().unwrap_or(member);
    if matches!(root, "toolOutput" | "tool_output") {
        return point == Point::ToolError && member == "error";
    }
    let compared = condition.compared_tool_names();
    let names = match named(hook) {
        Some((_, names)) => names,
        None => compared,
    };
    let has = |name: &String| members_of(name).is_some_and(|members| members.contains(&member));
    matches!(root, "toolInput" | "tool_input") && !names.is_empty() && names.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    fn on(event: &str, matcher: &str, condition: &str, want: &[&str]) {
        let text = format!(
            r#"{{"event":"{event}","matcher":"{matcher}","if_expr":"{condition}","handler":{{"type":"script","source":"x"}}}}"#
        );
        check(RULE.id, &text, want);
    }

    #[test]
    fn members_that_may_be_missing() {
        let command = "toolInput.command.contains('rm')";
        on("pre_tool_use", "", command, &["`has(toolInput.command) && …`"]);
        on("pre_tool_use", "exec|write_file", command, &["without `toolInput.command`"]);
        on("pre_tool_use", "my_tool", command, &["without `toolInput.command`"]);
        on("pre_tool_use", "exec", "toolInput.timeout > 5", &["without `toolInput.timeout`"]);
        on("post_tool_use", "exec", "toolOutput.stdout == ''", &["without `toolOutput.stdout`"]);
    }

    #[test]
    fn members_that_are_there_or_asked_for() {
        let command = "toolInput.command.contains('rm')";
        on("pre_tool_use", "exec", command, &[]);
        on("pre_tool_use", "write_file|read_file", "tool_input.path == '/etc/passwd'", &[]);
        on("pre_tool_use", "", "toolName == 'exec' && toolInput.command == 'ls'", &[]);
        on("pre_tool_use", "", "has(toolInput.command) && toolInput.command == 'ls'", &[]);
        on("tool_error", "", "toolOutput.error.contains('denied')", &[]);
    }
}
