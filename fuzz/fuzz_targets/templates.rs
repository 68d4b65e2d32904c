//! Templates: `{{name}}` is filled in once, from left to right, and nothing that is filled in is looked at again.
//!
//! Input: the text of the event, a NUL, the template.

#![no_main]

use std::borrow::Cow;

use hookgate_core::template::{Template, Variable, Variables};
use hookgate_core::word::Word;
use libfuzzer_sys::fuzz_target;

/// An event that has every variable with this text, or none.
struct Event<'t>(Option<&'t str>);

impl Variables for Event<'_> {
    fn get(&self, _variable: Variable) -> Option<Cow<'_, str>> {
        self.0.map(Cow::Borrowed)
    }
}

fuzz_target!(|input: &str| {
    let (value, source) = input.split_once('\0').unwrap_or(("{{label}} $1 {{", input));
    let template = Template::parse(source);

    let filled = template.render(&Event(Some(value)));
    let (expected, names) = fill(source, value);
    assert_eq!(filled, expected);
    assert_eq!(template.variables().map(Word::as_str).collect::<Vec<_>>(), names);

    assert_eq!(template.render(&Event(None)), source, "what an event does not have stays as it is written");
    if names.is_empty() {
        assert_eq!(filled, source);
        assert_eq!(Template::parse(&filled), template);
    }
});

/// The same the slow way: at each place, is one of the names written here?
fn fill(source: &str, value: &str) -> (String, Vec<&'static str>) {
    let (mut out, mut names, mut rest) = (String::new(), Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        let here = |name: &str| rest.strip_prefix("{{")?.strip_prefix(name)?.strip_prefix("}}");
        match Variable::ALL.iter().find_map(|(name, _)| Some((*name, here(name)?))) {
            Some((name, after)) => {
                names.push(name);
                out.push_str(value);
                rest = after;
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    (out, names)
}
