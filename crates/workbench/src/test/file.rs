//! The format of test files: text in, tests out. All faults are told at once, with their places.

use super::expect::Expect;
use crate::desk::Given;
use crate::step::{Step, Whose};
use hookgate_core::define::{Fields, Node, NodeValue, Problem, Report, nearest, read_document};
use hookgate_core::handler::Answer;
use hookgate_core::hook::{Hook, Work};
use hookgate_core::set::HookSet;
use hookgate_handlers::said;
use std::collections::{HashMap, HashSet};

/// A test.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// Its name, unique in its file.
    pub name: String,
    /// Its place in the file's list, from 0.
    pub index: usize,
    /// What happens, each step with what is expected of it alone.
    pub steps: Vec<(Step, Option<Expect>)>,
    /// What is expected of all steps together.
    pub expect: Option<Expect>,
    /// What handlers are made to say, by the hook's name.
    pub given: HashMap<String, Vec<Given>>,
    /// Whether handlers that reach out of the process run.
    pub live: bool,
    /// Whose events these are where they do not say it.
    pub whose: Whose,
}

/// What a test file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Tests {
    /// The tests.
    pub tests: Vec<Test>,
    /// The hooks that these tests are about; none: all.
    pub only: Option<Vec<String>>,
}

/// The names by which a test may call hooks.
#[derive(Debug, Clone, Default)]
pub struct Names {
    all: Vec<String>,
    with_handler: Vec<String>,
}

impl Names {
    /// Those of a set.
    pub fn of(set: &HookSet) -> Names {
        let has_handler = |hook: &&Hook| matches!(hook.work, Work::Handler { .. });
        let name = |hook: &Hook| hook.name.to_string();
        Names {
            all: set.hooks().iter().map(name).collect(),
            with_handler: set.hooks().iter().filter(has_handler).map(name).collect(),
        }
    }

    /// Those among them that a file is about.
    fn only(&self, only: &[String]) -> Names {
        let among = |names: &[String]| names.iter().filter(|name| only.contains(name)).cloned().collect();
        Names { all: among(&self.all), with_handler: among(&self.with_handler) }
    }

    /// Notes a name that no hook has.
    pub(super) fn check(&self, report: &Report<'_>, at: usize, path: &str, name: &str) {
        // chains end with a block of their own where agents nest too deep
        if name != "hookgate" && !self.all.iter().any(|known| known == name) {
            report.add(at, path, format!("no hook `{name}` is loaded here"), near(name, &self.all));
        }
    }

    fn check_answered(&self, report: &Report<'_>, at: usize, path: &str, name: &str) {
        if self.with_handler.iter().any(|known| known == name) {
            return;
        }
        if self.all.iter().any(|known| known == name) {
            report.add(at, path, format!("hook `{name}` has no handler that could answer"), None);
        } else {
            report.add(at, path, format!("no hook `{name}` is loaded here"), near(name, &self.with_handler));
        }
    }
}

fn near(name: &str, names: &[String]) -> Option<String> {
    nearest(name, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Reads a test file.
///
/// # Errors
/// All that is wrong with it.
pub fn read(file: &str, text: &str, names: &Names) -> Result<Tests, Vec<Problem>> {
    read_document(file, text, |root, report| match &root.value {
        NodeValue::List(items) => {
            let tests = Reader { report, names, shared: Shared::default() }.tests(items, "tests")?;
            Some(Tests { tests, only: None })
        }
        NodeValue::Object(_) => {
            let fields = Fields::of(report, root, String::new())?;
            fields.text("$schema");
            let only = only(report, names, &fields);
            let names = &only.as_ref().map_or_else(|| names.clone(), |only| names.only(only));
            let shared = Shared {
                given: given(report, names, &fields, ""),
                live: fields.flag("live").unwrap_or(false),
            };
            if !fields.has("tests") {
                fields.missing("tests", "the list of tests");
            }
            let items = fields.list("tests");
            fields.finish();
            let tests = Reader { report, names, shared }.tests(items?, "tests")?;
            Some(Tests { tests, only })
        }
        _ => {
            let message =
                format!("expected a list of tests, or an object with `tests`, found {}", root.describe());
            report.add(root.at, "", message, None);
            None
        }
    })
}

/// The hooks that a file is about.
fn only(report: &Report<'_>, names: &Names, fields: &Fields<'_>) -> Option<Vec<String>> {
    let only = fields.has("only").then(|| fields.texts("only"))?;
    if only.is_empty() {
        let message = "expected the names of hooks, found none: such tests would show nothing".to_owned();
        fields.refuse("only", message, None);
    }
    only.iter().for_each(|name| names.check(report, fields.place_of("only"), "only", name));
    Some(only)
}

/// What all tests of a file share.
#[derive(Default)]
struct Shared {
    given: HashMap<String, Vec<Given>>,
    live: bool,
}

struct Reader<'a> {
    report: &'a Report<'a>,
    names: &'a Names,
    shared: Shared,
}

impl Reader<'_> {
    fn tests(&self, items: &[Node], path: &str) -> Option<Vec<Test>> {
        let mut taken = HashSet::new();
        let mut tests = Vec::new();
        for (index, node) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(test) = self.test(node, index, &path) else { continue };
            if !taken.insert(test.name.clone()) {
                let message = format!("another test of this file is called `{}`", test.name);
                self.report.add(node.at, &format!("{path}.name"), message, None);
            }
            tests.push(test);
        }
        Some(tests)
    }

    fn test(&self, node: &Node, index: usize, path: &str) -> Option<Test> {
        let fields = Fields::of(self.report, node, path.to_owned())?;
        if !fields.has("name") {
            fields.missing("name", "what the test shows, in words");
        }
        let name = fields.text("name").map(str::to_owned);
        let steps = self.steps(&fields, path);
        let expect = fields
            .object("expect")
            .map(|fields| Expect::read(self.report, self.names, fields, &format!("{path}.expect")));
        let of_steps = steps.iter().flatten().any(|(_, expect)| expect.is_some());
        if fields.nearly_has("expect") && !of_steps {
            fields.missing("expect", "what must come of it");
        } else if !fields.has("expect") && !of_steps && steps.is_some() {
            let help = r#"write {} and let hookgate test --update fill it"#;
            self.report.add(
                node.at,
                &format!("{path}.expect"),
                "missing; expected what must come of it".into(),
                Some(help.into()),
            );
        }
        let mut all_given = self.shared.given.clone();
        all_given.extend(given(self.report, self.names, &fields, path));
        let live = fields.flag("live").unwrap_or(self.shared.live);
        let whose = Whose {
            session_id: fields.text("sessionId").map(str::to_owned),
            tenant_id: fields.text("tenantId").map(str::to_owned),
            agent_id: fields.text("agentId").map(str::to_owned),
            depth: fields.count("depth").map(|depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            ..Whose::default()
        };
        fields.finish();
        Some(Test { name: name?, index, steps: steps?, expect, given: all_given, live, whose })
    }

    /// The one step, or those of the session.
    fn steps(&self, fields: &Fields<'_>, path: &str) -> Option<Vec<(Step, Option<Expect>)>> {
        let (one, several) = (fields.node("event"), fields.list("session"));
        match (one, several) {
            (Some(node), None) if !fields.has("session") => {
                Some(vec![(Step::read_node(self.report, node, &format!("{path}.event"))?, None)])
            }
            (None, Some(items)) => {
                if items.is_empty() {
                    fields.refuse("session", "expected at least one step, found an empty list".into(), None);
                }
                let read = |(index, node)| self.step(node, &format!("{path}.session[{index}]"));
                let steps: Vec<_> = items.iter().enumerate().map(read).collect();
                steps.into_iter().collect()
            }
            (None, None) => {
                if !fields.has("session") {
                    fields.missing("event", "what happens, or `session`, a list of what happens");
                }
                None
            }
            (Some(_), _) => {
                fields.refuse("session", "only one of `event` and `session` may be given".into(), None);
                None
            }
        }
    }

    fn step(&self, node: &Node, path: &str) -> Option<(Step, Option<Expect>)> {
        let fields = Fields::of(self.report, node, path.to_owned())?;
        let expect = fields
            .object("expect")
            .map(|fields| Expect::read(self.report, self.names, fields, &format!("{path}.expect")));
        let step = Step::read(&fields);
        fields.finish();
        Some((step?, expect))
    }
}

/// `answers`: what handlers are made to say.
fn given(report: &Report<'_>, names: &Names, fields: &Fields<'_>, path: &str) -> HashMap<String, Vec<Given>> {
    let mut given = HashMap::new();
    let Some(Node { value: NodeValue::Object(entries), .. }) =
        fields.object("answers").and_then(|_| fields.node("answers"))
    else {
        return given;
    };
    for entry in entries {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}answers.{}", entry.key);
        names.check_answered(report, entry.at, &path, &entry.key);
        let answers: Vec<Given> = match &entry.node.value {
            NodeValue::List(items) => {
                if items.is_empty() {
                    report.add(
                        entry.node.at,
                        &path,
                        "expected at least one answer, found an empty list".into(),
                        None,
                    );
                }
                items.iter().filter_map(|node| one_given(report, node, &path)).collect()
            }
            _ => one_given(report, &entry.node, &path).into_iter().collect(),
        };
        given.insert(entry.key.clone(), answers);
    }
    given
}

/// One answer: a word, or what a handler may say.
fn one_given(report: &Report<'_>, node: &Node, path: &str) -> Option<Given> {
    const WORDS: [&str; 4] = ["allow", "block", "timeout", "error"];
    match &node.value {
        NodeValue::Text(word) => match word.as_str() {
            "allow" | "block" => Some(Given::Answer(Box::new(Answer::with_decision(word)))),
            "timeout" => Some(Given::Late),
            "error" => Some(Given::Failed("an error".into())),
            other => {
                let message =
                    format!("unknown answer `{other}`; expected one of {}, or an object", WORDS.join(", "));
                report.add(node.at, path, message, nearest(other, &WORDS));
                None
            }
        },
        NodeValue::Object(entries) => {
            let fields = Fields::of(report, node, path.to_owned())?;
            if fields.has("error") {
                let why = fields.text("error").map(str::to_owned);
                fields.finish();
                return why.map(Given::Failed);
            }
            let known: Vec<Option<&Node>> = said::MEMBERS.iter().map(|name| fields.node(name)).collect();
            drop(known);
            fields.node("error");
            fields.finish();
            let members = entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect();
            match said::read(members) {
                Ok(answer) => Some(Given::Answer(Box::new(answer))),
                Err(why) => {
                    report.add(node.at, path, why, None);
                    None
                }
            }
        }
        _ => {
            let message =
                format!("expected one of {}, or an object, found {}", WORDS.join(", "), node.describe());
            report.add(node.at, path, message, None);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::action::ActionKinds;
    use hookgate_core::define;
    use hookgate_core::hook::Source;

    const HOOKS: &str = r#"[
        {"id": "gate", "event": "pre_tool_use", "handler": {"type": "http", "url": "https://a.example"}},
        {"label": "shrug", "target": "chat"}
    ]"#;

    fn read_text(text: &str) -> Result<Vec<Test>, Vec<String>> {
        read_file(text).map(|file| file.tests)
    }

    fn read_file(text: &str) -> Result<Tests, Vec<String>> {
        let hooks = define::read("h.json", HOOKS, Source::User, &ActionKinds::standard()).hooks;
        let names = Names::of(&HookSet::new(hooks).unwrap());
        read("a.test.json", text, &names)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn refused(text: &str, want: &[&str]) {
        let said = read_text(text).unwrap_err();
        assert_eq!(said.len(), want.len(), "{said:#?}");
        for (said, want) in said.iter().zip(want) {
            assert!(said.contains(want), "`{said}` lacks `{want}`");
        }
    }

    #[test]
    fn both_shapes_of_a_file_are_read() {
        let test = r#"{"name": "a", "event": {"event": "stop"}, "expect": {"decision": "allow"}}"#;
        let tests = read_text(&format!("// what it is\n[{test}]")).unwrap();
        assert_eq!((tests[0].name.as_str(), tests[0].steps.len(), tests[0].live), ("a", 1, false));
        let file = format!(r#"{{"live": true, "answers": {{"gate": "block"}}, "tests": [{test}]}}"#);
        let tests = read_text(&file).unwrap();
        assert!(tests[0].live);
        assert_eq!(tests[0].given["gate"], [Given::Answer(Box::new(Answer::with_decision("block")))]);
    }

    #[test]
    fn a_test_s_own_answers_come_on_top() {
        let file = r#"{"answers": {"gate": "block"}, "tests": [
            {"name": "a", "event": {"event": "stop"}, "expect": {},
             "answers": {"gate": ["timeout", {"error": "down"}, {"decision": "allow", "append": ["x"]}]}}]}"#;
        let given = &read_text(file).unwrap()[0].given["gate"];
        assert_eq!(given[..2], [Given::Late, Given::Failed("down".into())]);
        assert!(matches!(&given[2], Given::Answer(answer) if answer.additions.len() == 1));
    }

    #[test]
    fn a_file_may_be_about_some_hooks() {
        let file = |only: &str, hook: &str| {
            format!(
                r#"{{"only": {only}, "tests": [{{"name": "a", "event": {{"event": "stop"}}, "expect": {{"hooks": ["{hook}"]}}}}]}}"#
            )
        };
        assert_eq!(read_file(&file(r#"["gate"]"#, "gate")).unwrap().only, Some(vec!["gate".into()]));
        refused(&file(r#"["gate"]"#, "shrug"), &["no hook `shrug` is loaded here"]);
        refused(&file(r#"["gaet"]"#, "gate"), &["`gaet` is loaded here (did you mean `gate`?)", "`gate` is"]);
        refused(&file("[]", "gate"), &["expected the names of hooks, found none", "`gate` is"]);
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        refused("{}", &["a.test.json:1:1: field `tests`: missing"]);
        refused("1", &["expected a list of tests, or an object with `tests`, found the number `1`"]);
        refused(
            r#"[{"nmae": "a", "event": {"event": "stop"}, "expect": {}}]"#,
            &[
                "unknown field `nmae`, and `name` is missing; expected what the test shows, in words (did you mean `name`?)",
            ],
        );
        refused(
            r#"[{"name": "a", "event": {"event": "stop"}, "expct": {}}]"#,
            &[
                "unknown field `expct`, and `expect` is missing; expected what must come of it (did you mean `expect`?)",
            ],
        );
        refused(r#"[{"name": "a", "expect": {}}]"#, &["field `tests[0].event`: missing"]);
        refused(r#"[{"name": "a", "event": {"event": "stop"}}]"#, &["let hookgate test --update fill it"]);
        refused(
            r#"[{"name": "a", "event": {"event": "stop"}, "session": [], "expect": {}}]"#,
            &["only one of `event` and `session`"],
        );
        refused(r#"[{"name": "a", "session": [], "expect": {}}]"#, &["at least one step"]);
        let twice = r#"{"name": "a", "event": {"event": "stop"}, "expect": {}}"#;
        refused(&format!("[{twice},{twice}]"), &["another test of this file is called `a`"]);
    }

    #[test]
    fn hooks_that_are_not_there_are_named() {
        let with = |answers: &str| {
            format!(
                r#"[{{"name": "a", "event": {{"event": "stop"}}, "expect": {{}}, "answers": {answers}}}]"#
            )
        };
        refused(&with(r#"{"gaet": "allow"}"#), &["no hook `gaet` is loaded here (did you mean `gate`?)"]);
        refused(&with(r#"{"shrug": "allow"}"#), &["hook `shrug` has no handler"]);
        refused(&with(r#"{"gate": "allwo"}"#), &["did you mean `allow`?"]);
        refused(&with(r#"{"gate": {"decison": "allow"}}"#), &["did you mean `decision`?"]);
        refused(&with(r#"{"gate": {"append": 1}}"#), &["`append` is no text"]);
        refused(&with(r#"{"gate": 1}"#), &["or an object, found the number `1`"]);
    }
}
