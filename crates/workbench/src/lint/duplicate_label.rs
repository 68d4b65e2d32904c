//! Two rules of one name: tests, records and refusals name a hook, and cannot tell them apart. The same id in several
//! scopes is one rule and fine.

use super::rule::{Notes, Rule};
use hookgate_core::hook::Hook;
use std::collections::HashMap;

pub(super) const RULE: Rule =
    Rule { id: "duplicate-label", about: "several rules of one name", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    let mut first_of: HashMap<&str, &Hook> = HashMap::new();
    let mut as_written: Vec<&&Hook> = hooks.iter().collect();
    as_written.sort_by(|one, other| (&one.file, one.index).cmp(&(&other.file, other.index)));
    for hook in as_written {
        match first_of.get(&*hook.name) {
            None => {
                first_of.insert(&hook.name, hook);
            }
            Some(first) if first.key == hook.key => {}
            Some(first) => {
                let field = if notes.written.field(hook, "id").is_some() { "id" } else { "label" };
                let message = format!(
                    "the name `{}` is used already, by hook {} in {}; records and tests cannot tell the two apart",
                    hook.name,
                    first.index.saturating_add(1),
                    first.file
                );
                notes.add(hook, field, message, "give each rule a name of its own");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn names_that_stand_twice() {
        check(
            RULE.id,
            r#"[{"label":"leak","target":"chat"},{"label":"other","target":"chat"},{"label":"leak","target":"stream"}]"#,
            &["label: the name `leak` is used already, by hook 1 in hooks/a.json"],
        );
        check(RULE.id, r#"[{"target":"chat"},{"target":"chat"}]"#, &[]);
        let scope = |tenant: &str| {
            format!(
                r#"{{"id":"n","event":"stop","scope":"tenant","tenant":"{tenant}","handler":{{"type":"script","source":"x"}}}}"#
            )
        };
        check(RULE.id, &format!("[{},{}]", scope("a"), scope("b")), &[]);
    }
}
