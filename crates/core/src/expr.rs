//! Conditions: CEL over the event, bounded so that none can run away.
//!
//! CEL has no cost limit of its own, so a condition is short, loops at most one level deep, and sees lists of a
//! bounded length. One that cannot be answered is [`Fit::Unsure`]: it never excuses a hook.

mod advice;
mod plain;
mod quick;
mod seen;

use crate::define::nearest;
use crate::facts::{Facts, may_have};
use crate::point::Point;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use cel::{Context, Env, Program, Value as Cel};
use quick::Quick;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Longer texts overflow the parser's stack long before they mean anything.
const LONGEST_SOURCE: usize = 1024;
/// Deeper brackets than this are refused before they reach the parser.
const DEEPEST: usize = 32;
/// Longer lists of an event are not looped over.
const LONGEST_LIST: usize = 1000;

/// The names that a condition may use, and the member that each stands for.
const ROOTS: [(&str, &str); 28] = [
    ("event", "event"),
    ("eventId", "eventId"),
    ("event_id", "eventId"),
    ("toolName", "toolName"),
    ("tool_name", "toolName"),
    ("toolInput", "toolInput"),
    ("tool_input", "toolInput"),
    ("toolOutput", "toolOutput"),
    ("tool_output", "toolOutput"),
    ("rawInput", "rawInput"),
    ("raw_input", "rawInput"),
    ("prompt", "rawInput"),
    ("role", "role"),
    ("content", "content"),
    ("response", "response"),
    ("sessionId", "sessionId"),
    ("session_id", "sessionId"),
    ("rootSessionId", "rootSessionId"),
    ("root_session_id", "rootSessionId"),
    ("tenantId", "tenantId"),
    ("tenant_id", "tenantId"),
    ("agentId", "agentId"),
    ("agent_id", "agentId"),
    ("depth", "depth"),
    ("subagent", "subagent"),
    ("nativeToolName", "nativeToolName"),
    ("native_tool_name", "nativeToolName"),
    ("sub_agent", "subagent"),
];

/// The members that are objects where an event has them.
const OBJECTS: [&str; 3] = ["toolInput", "toolOutput", "subagent"];

/// Whether a filter lets an event through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It does not concern the hook.
    No,
    /// It does.
    Yes,
    /// It could not be told, for this reason; the hook runs.
    Unsure(String),
}

/// A compiled condition.
pub struct Condition {
    source: String,
    /// The same where it is plain enough to be answered without the interpreter.
    quick: Option<Quick>,
    /// Made when it is first needed where `quick` was read without it.
    program: OnceLock<Result<Program, String>>,
    roots: Vec<(&'static str, &'static str)>,
}

impl Condition {
    /// Compiles a condition. The error is one sentence, and says what is allowed.
    pub fn parse(source: &str) -> Result<Condition, String> {
        if source.len() > LONGEST_SOURCE {
            return Err(format!("longer than {LONGEST_SOURCE} bytes"));
        }
        if deepest(source) > DEEPEST {
            return Err(format!("brackets nest deeper than {DEEPEST}"));
        }
        if let Some(plain) = plain::read(source) {
            let (quick, roots) = (Some(plain.quick), plain.roots);
            return Ok(Condition { source: source.to_owned(), quick, program: OnceLock::new(), roots });
        }
        let program = compile(source)?;
        if let Some(name) = advice::unknown_function(program.expression()) {
            let known = advice::FUNCTIONS;
            let near = nearest(name, &known).map(|near| format!(" ({near})")).unwrap_or_default();
            return Err(format!("unknown function `{name}`; expected one of {}{near}", known.join(", ")));
        }
        if advice::is_no_question(program.expression()) {
            return Err("is a value; expected a question that is answered by yes or no".into());
        }
        if loops(program.expression()) > 1 {
            return Err("loops (all, exists, map, filter) may not be nested".into());
        }
        let mut roots = Vec::new();
        for name in program.references().variables() {
            match ROOTS.iter().find(|(root, _)| *root == name) {
                Some((root, member)) => roots.push((*root, *member)),
                None if is_bound_inside(program.expression(), name) => {}
                None => {
                    let known: Vec<&str> =
                        ROOTS.iter().filter(|(root, member)| root == member).map(|(r, _)| *r).collect();
                    return Err(format!("unknown name `{name}`; expected one of {}", known.join(", ")));
                }
            }
        }
        Ok(Condition {
            source: source.to_owned(),
            quick: Quick::read(program.expression()),
            program: Ok(program).into(),
            roots,
        })
    }

    /// The written text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Remarks about what may surprise at this point.
    pub fn notes(&self, point: Point) -> Vec<String> {
        let never = self.roots.iter().filter(|(_, member)| !may_have(point, member));
        never.map(|(name, _)| format!("`{name}` is never there at `{point}`, so it is null")).collect()
    }

    /// The members of the event's objects that it reads without asking for them with `has()`, such as `toolInput.path`.
    pub fn untested(&self) -> Vec<String> {
        self.expression().map(advice::untested).unwrap_or_default()
    }

    /// The names that it compares the tool's name with.
    pub fn compared_tool_names(&self) -> Vec<String> {
        self.expression().map(|expr| advice::compared_with(expr, "toolName")).unwrap_or_default()
    }

    /// The patterns of its calls of `matches()`, as far as they are written out.
    pub fn patterns(&self) -> Vec<String> {
        self.expression().map(advice::patterns).unwrap_or_default()
    }

    fn program(&self) -> Result<&Program, &str> {
        self.program.get_or_init(|| compile(&self.source)).as_ref().map_err(String::as_str)
    }

    fn expression(&self) -> Option<&IdedExpr> {
        self.program().ok().map(Program::expression)
    }

    /// Answers it for one event.
    pub fn fits(&self, facts: &Facts) -> Fit {
        self.fits_bound(facts, &mut Bound::default())
    }

    /// The same where several conditions are asked about one event: what it binds is bound once.
    pub(crate) fn fits_bound(&self, facts: &Facts, bound: &mut Bound) -> Fit {
        match self.quick.as_ref().and_then(|quick| quick.answer(facts)) {
            Some(true) => Fit::Yes,
            Some(false) => Fit::No,
            None => self.interpreted(facts, bound),
        }
    }

    fn interpreted(&self, facts: &Facts, bound: &mut Bound) -> Fit {
        if let Err(why) = bound.bind(self, facts) {
            return Fit::Unsure(why);
        }
        let Some(context) = &bound.context else {
            return Fit::Unsure("nothing is bound".into());
        };
        let program = match self.program() {
            Ok(program) => program,
            Err(why) => return Fit::Unsure(why.to_owned()),
        };
        match program.execute(context) {
            Ok(Cel::Bool(true)) => Fit::Yes,
            Ok(Cel::Bool(false)) => Fit::No,
            Ok(_) => Fit::Unsure("the answer is not yes or no".into()),
            Err(error) => Fit::Unsure(error.to_string()),
        }
    }
}

fn compile(source: &str) -> Result<Program, String> {
    Program::compile(source).map_err(|error| {
        let text = error.to_string();
        format!("not a CEL expression: {}", text.lines().next().unwrap_or_default())
    })
}

/// The functions that conditions have, made once.
fn environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| Arc::new(Env::stdlib())).clone()
}

/// The members of one event that conditions have asked for, in CEL's form. Good for one event as it is now.
#[derive(Default)]
pub(crate) struct Bound {
    context: Option<Context<'static, 'static>>,
    names: Vec<&'static str>,
    /// Members that no condition may loop over.
    too_long: Vec<&'static str>,
}

impl Bound {
    fn bind(&mut self, condition: &Condition, facts: &Facts) -> Result<(), String> {
        let context = self.context.get_or_insert_with(|| Context::with_env(environment()));
        for (name, member) in &condition.roots {
            if !self.names.contains(name) {
                self.names.push(name);
                let value = match facts.get(member) {
                    Some(value) if longest_list(value) > LONGEST_LIST => {
                        self.too_long.push(name);
                        Cel::Null
                    }
                    Some(value) => in_cel(value),
                    // so that `has(toolOutput.text)` is a plain no where there is no output
                    None if OBJECTS.contains(member) => HashMap::<String, Cel>::new().into(),
                    None => Cel::Null,
                };
                context.add_variable_from_value(*name, value);
            }
            if self.too_long.contains(name) {
                return Err(format!("`{name}` has a list of more than {LONGEST_LIST} items"));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}

/// How deep brackets nest outside texts, roughly: texts with escapes may count too much, never too little.
fn deepest(source: &str) -> usize {
    let (mut depth, mut most) = (0usize, 0usize);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth = depth.saturating_add(1);
                most = most.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// A JSON value in CEL's types. Whole numbers are `int`, as they are when they stand in the condition: CEL has no
/// `uint % int`, and a condition that cannot be answered would run the hook on each event.
fn in_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Cel::Int(number),
            (None, Some(number)) => Cel::UInt(number),
            (None, None) => number.as_f64().map_or(Cel::Null, Cel::Float),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(in_cel).collect())),
        Value::Object(members) => {
            let members: HashMap<String, Cel> =
                members.iter().map(|(name, value)| (name.clone(), in_cel(value))).collect();
            members.into()
        }
    }
}

fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest_list).max().unwrap_or(0).max(items.len()),
        Value::Object(members) => members.values().map(longest_list).max().unwrap_or(0).max(members.len()),
        _ => 0,
    }
}

/// How many loops stand inside each other.
fn loops(expr: &IdedExpr) -> usize {
    let inside = children(expr).into_iter().map(loops).max().unwrap_or(0);
    inside.saturating_add(usize::from(matches!(expr.expr, Expr::Comprehension(_))))
}

/// True if a loop of the expression gives this name to its items.
fn is_bound_inside(expr: &IdedExpr, name: &str) -> bool {
    let here = matches!(&expr.expr, Expr::Comprehension(c) if c.iter_var == name || c.accu_var == name || c.iter_var2.as_deref() == Some(name));
    here || children(expr).into_iter().any(|child| is_bound_inside(child, name))
}

fn children(expr: &IdedExpr) -> Vec<&IdedExpr> {
    match &expr.expr {
        Expr::Call(call) => call.target.iter().map(|target| &**target).chain(&call.args).collect(),
        Expr::Comprehension(c) => vec![&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(entry_children).collect(),
        Expr::Struct(made) => made.entries.iter().flat_map(entry_children).collect(),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn entry_children(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{GateEvent, Head};
    use crate::point::Point;
    use serde_json::json;

    fn facts(tool_input: Value) -> Facts {
        let head = Head { session_id: "s".into(), depth: 1, ..Head::default() };
        Facts::of_gate(&head, GateEvent::PreToolUse { tool_name: "exec".into(), tool_input })
    }

    fn check(source: &str, want: &str) {
        let fit = Condition::parse(source)
            .unwrap()
            .fits(&facts(json!({"path": "/etc/x", "flags": ["a", "force"], "n": 3, "big": u64::MAX, "f": 0.5, "none": null})));
        let got = match fit {
            Fit::No => "no",
            Fit::Yes => "yes",
            Fit::Unsure(_) => "unsure",
        };
        assert_eq!(got, want, "{source}: {fit:?}");
    }

    #[test]
    fn answers() {
        check("toolInput.path.startsWith('/etc')", "yes");
        check("tool_name == 'exec' && depth == 1", "yes");
        check("'force' in toolInput.flags", "yes");
        check("toolInput.flags.exists(f, f == 'force')", "yes");
        check("toolInput.n > 5", "no");
        check("toolInput.n % 2 == 1 && toolInput.n + 1 == 4 && toolInput.n == 3.0", "yes");
        check("toolInput.big > 1u && toolInput.f < 0.6 && toolInput.n - 5 < 0", "yes");
        check("size(toolInput.flags) + 1 == 3 && toolInput.none == null", "yes");
        check("has(toolInput.nope) && toolInput.nope == 1", "no");
        check("has(toolOutput.text)", "no");
        check("toolInput.nope == 1 || true", "yes");
        check("toolInput.nope == 1 && false", "no");
    }

    #[test]
    fn what_cannot_be_answered_is_unsure() {
        check("toolInput.nope.startsWith('/etc')", "unsure");
        check("toolInput.path", "unsure");
        check("toolInput.n.startsWith('x')", "unsure");
        check("toolOutput.text == 'x'", "unsure");
    }

    #[test]
    fn what_may_surprise_is_noted() {
        let check = |source: &str, want: &[&str]| {
            let condition = Condition::parse(source).unwrap();
            let mut notes = condition.notes(Point::PreToolUse);
            notes.extend(condition.untested());
            assert_eq!(notes.len(), want.len(), "{source}: {notes:?}");
            for (note, want) in notes.iter().zip(want) {
                assert!(note.contains(want), "{note}");
            }
        };
        check("toolInput.path.startsWith('/etc')", &["toolInput.path"]);
        check("has(toolInput.path) && toolInput.path.startsWith('/etc')", &[]);
        check("has(tool_input.a.b) && tool_input.a.b == 1", &["tool_input.a"]);
        check("toolName == 'exec' && size(tool_input) > 1", &[]);
        check("response.contains('x')", &["`response` is never there at `pre_tool_use`"]);
        check("toolInput.flags.exists(f, f == 'x')", &["toolInput.flags"]);
    }

    #[test]
    fn what_it_compares_is_known() {
        let check = |source: &str, names: &[&str], patterns: &[&str]| {
            let condition = Condition::parse(source).unwrap();
            assert_eq!(condition.compared_tool_names(), names, "{source}");
            assert_eq!(condition.patterns(), patterns, "{source}");
        };
        check("tool_name == 'Bash' || 'Write' != toolName", &["Bash", "Write"], &[]);
        check("toolName in ['a', 'b'] && nativeToolName == 'Bash'", &["a", "b"], &[]);
        check("toolInput.path.matches('*.rs') || matches(tool_name, 'x')", &[], &["*.rs", "x"]);
        check("toolInput.path == 'Bash'", &[], &[]);
    }

    #[test]
    fn every_function_of_the_list_can_be_called() {
        for name in advice::FUNCTIONS {
            let source = match name {
                "size" | "type" | "dyn" | "string" | "bytes" => {
                    format!("{name}(toolName) == {name}(toolName)")
                }
                "int" | "uint" | "double" => format!("{name}(depth) == {name}(depth)"),
                "bool" => "bool('true')".to_owned(),
                _ => format!("toolName.{name}('') || true"),
            };
            check(&source, "yes");
        }
    }

    #[test]
    fn what_could_run_away_is_refused() {
        let refused = |source: &str, word: &str| {
            let error = Condition::parse(source).unwrap_err();
            assert!(error.contains(word), "{error}");
        };
        refused("tool_nmae == 'exec'", "unknown name `tool_nmae`");
        refused("toolName ==", "not a CEL expression");
        refused("toolInput.path.startWith('/etc')", "unknown function `startWith`");
        refused("toolInput.path.startWith('/etc')", "did you mean `startsWith`?");
        refused("'exec'", "is a value");
        refused(&format!("true{}", " && true".repeat(200)), "longer than 1024 bytes");
        refused(&"(".repeat(40), "nest deeper");
        refused("toolInput.flags.exists(a, toolInput.flags.exists(b, a == b))", "nested");
        let long = Condition::parse("toolInput.flags.exists(f, f == 1)").unwrap();
        assert!(matches!(long.fits(&facts(json!({"flags": vec![0; 2000]}))), Fit::Unsure(_)));
    }
}
