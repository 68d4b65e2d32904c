//! Writing changed JSON so that what did not change keeps its bytes.
//!
//! A [`Value`] holds a number in 64 bits: an integer of 20 digits, or 0.10000000000000000555, is another one when it is
//! written. So a text that changed is not written from its tree alone. The text that the tree was read from is walked beside
//! it, and what still reads as the tree has it is copied: numbers, escapes, blanks. What differs is written anew.
//!
//! An object with a key twice is always written anew: the tree has only one of the two.

use std::cell::Cell;

use serde_json::Value;

use super::scan::{Kind, Member, Node, scan};
use crate::wire::json;

/// So many neighbours are looked at to find what became of an element.
const NEAR: usize = 16;
/// So many of them, where none is the same, to find the one that is most alike.
const ALIKE: usize = 8;
/// So many times the text is read at most to find elements again. Whoever wrote the text may have nested lists such that each
/// level is compared as a whole.
const READINGS: usize = 8;

/// The JSON text of `new`, which was made by changing what `old` reads as. Numbers that are the same as 64-bit floats count
/// as unchanged: a hook that takes part in JavaScript cannot tell them apart.
///
/// ```
/// use hookgate_llm::proxy::{read_json, rewritten};
/// let old = r#"{"n": 12345678901234567890123, "a": "x"}"#;
/// let mut new = read_json(old.as_bytes()).unwrap();
/// new["a"] = "y".into();
/// assert_eq!(rewritten(old, &new), r#"{"n":12345678901234567890123,"a":"y"}"#);
/// ```
pub fn rewritten(old: &str, new: &Value) -> String {
    let Some(node) = scan(old) else { return new.to_string() };
    let mut out = String::with_capacity(old.len());
    let finder = Finder { left: Cell::new(old.len().saturating_mul(READINGS)) };
    write(&finder, &node, new, &mut out);
    out
}

/// Writes a value; true when it is as it was.
fn write(finder: &Finder, old: &Node<'_>, new: &Value, out: &mut String) -> bool {
    let from = out.len();
    let same = match (&old.kind, new) {
        (Kind::Scalar, new) => same_scalar(old.raw, new),
        (Kind::Object(members), Value::Object(new)) => write_object(finder, members, new, out),
        (Kind::List(items), Value::Array(new)) => write_list(finder, items, new, out),
        (_, new) => {
            out.push_str(&new.to_string());
            return false;
        }
    };
    if same {
        out.truncate(from);
        out.push_str(old.raw);
    } else if matches!(old.kind, Kind::Scalar) {
        out.push_str(&new.to_string());
    }
    same
}

fn write_object(
    finder: &Finder,
    old: &[Member<'_>],
    new: &serde_json::Map<String, Value>,
    out: &mut String,
) -> bool {
    let mut same = old.len() == new.len();
    let mut next = 0;
    out.push('{');
    for (n, (name, value)) in new.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        let is_it = |member: &&Member<'_>| member.name == name.as_str();
        // the order is most often the same
        let at = match old.get(next).filter(is_it) {
            Some(_) => Some(next),
            None => old.iter().position(|member| is_it(&member)),
        };
        match at.and_then(|at| Some((at, old.get(at)?))) {
            Some((at, member)) => {
                same &= at == n;
                next = at.saturating_add(1);
                out.push_str(member.raw_name);
                out.push(':');
                same &= write(finder, &member.value, value, out);
            }
            None => {
                same = false;
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                out.push_str(&value.to_string());
            }
        }
    }
    out.push('}');
    same
}

fn write_list(finder: &Finder, old: &[Node<'_>], new: &[Value], out: &mut String) -> bool {
    let mut all_same = old.len() == new.len();
    let mut at = 0;
    out.push('[');
    for (n, value) in new.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        let rest = old.get(at..).unwrap_or_default();
        match finder.origin(rest, new.get(n..).unwrap_or_default()) {
            Origin::Same(skipped, node) => {
                at = at.saturating_add(skipped).saturating_add(1);
                out.push_str(node.raw);
            }
            Origin::Changed(skipped, node) => {
                at = at.saturating_add(skipped).saturating_add(1);
                all_same &= write(finder, node, value, out);
            }
            Origin::New => {
                all_same = false;
                out.push_str(&value.to_string());
            }
        }
    }
    out.push(']');
    all_same
}

/// What an element was, and how many of the old ones stand before that.
enum Origin<'n, 't> {
    Same(usize, &'n Node<'t>),
    Changed(usize, &'n Node<'t>),
    New,
}

/// Finds elements again, as long as that is worth its time.
struct Finder {
    /// How many bytes may still be compared.
    left: Cell<usize>,
}

impl Finder {
    /// Which of the old elements the first of the new ones was.
    fn origin<'n, 't>(&self, old: &'n [Node<'t>], new: &[Value]) -> Origin<'n, 't> {
        let (Some(first), Some((value, later))) = (old.first(), new.split_first()) else {
            return Origin::New;
        };
        let mut near = old.iter().take(NEAR).enumerate();
        if let Some((n, node)) = near.find(|(_, node)| self.same(node, value)) {
            return Origin::Same(n, node);
        }
        if later.iter().take(NEAR).any(|later| self.same(first, later)) {
            return Origin::New;
        }
        if self.left.get() == 0 {
            // most often nothing came and nothing went
            return Origin::Changed(0, first);
        }
        let alike = old.iter().take(ALIKE).enumerate();
        let alike = alike.map(|(n, node)| (self.likeness(node, value), n, node));
        let most = alike.reduce(|best, other| if other.0 > best.0 { other } else { best });
        most.map_or(Origin::New, |(_, n, node)| Origin::Changed(n, node))
    }

    /// Whether a comparison may go on that costs so much.
    fn spend(&self, bytes: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(bytes.max(1)));
        left > 0
    }

    fn same(&self, old: &Node<'_>, new: &Value) -> bool {
        match (&old.kind, new) {
            (Kind::Scalar, new) => self.spend(old.raw.len()) && same_scalar(old.raw, new),
            (Kind::Object(members), Value::Object(new)) => {
                let same = |(member, (name, value)): (&Member<'_>, (&String, &Value))| {
                    member.name == name.as_str() && self.same(&member.value, value)
                };
                self.spend(1) && members.len() == new.len() && members.iter().zip(new).all(same)
            }
            (Kind::List(items), Value::Array(new)) => {
                let same = |(item, value)| self.same(item, value);
                self.spend(1) && items.len() == new.len() && items.iter().zip(new).all(same)
            }
            _ => false,
        }
    }

    /// How many single values two have in common.
    fn likeness(&self, old: &Node<'_>, new: &Value) -> usize {
        match (&old.kind, new) {
            (Kind::Scalar, new) => usize::from(self.spend(old.raw.len()) && same_scalar(old.raw, new)),
            (Kind::Object(members), Value::Object(new)) if self.spend(1) => members
                .iter()
                .filter_map(|member| Some(self.likeness(&member.value, new.get(member.name.as_ref())?)))
                .fold(0, usize::saturating_add),
            (Kind::List(items), Value::Array(new)) if self.spend(1) => items
                .iter()
                .zip(new)
                .map(|(item, value)| self.likeness(item, value))
                .fold(0, usize::saturating_add),
            _ => 0,
        }
    }
}

fn same_scalar(raw: &str, new: &Value) -> bool {
    let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match (new, inner) {
        (Value::String(text), Some(inner)) => {
            let plain = memchr::memchr(b'\\', inner.as_bytes()).unwrap_or(inner.len());
            if plain == inner.len() || inner.get(..plain) != text.get(..plain) || text.len() > inner.len() {
                return inner == text;
            }
            // escapes: most that differ do so before the first of them
            json::parse(raw).as_ref() == Some(new)
        }
        (Value::Number(new), None) => {
            let old = json::parse(raw);
            old.as_ref().and_then(Value::as_f64).is_some_and(|old| Some(old) == new.as_f64())
        }
        (Value::Null | Value::Bool(_), None) => json::parse(raw).as_ref() == Some(new),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn check(old: &str, change: impl Fn(&mut Value), want: &str) {
        let mut new = json::parse(old).unwrap();
        change(&mut new);
        let got = rewritten(old, &new);
        assert_eq!(got, want, "{old}");
        assert_eq!(json::parse(&got), Some(new), "{old}");
    }

    const ODD: &str = "12345678901234567890123";

    #[test]
    fn what_is_the_same_keeps_its_bytes() {
        for same in [
            " { \"a\" : [ 1 , 1e400, -1e999 ] , \"b\\u0063\" : \"\\u0041\\/\" }",
            "0.10000000000000000555",
            "[]",
            "{}",
            "\"\\ud83d\"",
            "[true,null,-0.0,1E5]",
        ] {
            check(same, |_| {}, same.trim_start());
        }
        let old = format!(
            "{{\"model\": \"m\", \"seed\": {ODD}, \"t\" : 0.10000000000000000555, \"messages\": [ {{\"role\": \"user\", \"content\": \"hi\", \"n\": {ODD}}} ]}}"
        );
        check(
            &old,
            |new| new["messages"][0]["content"] = "ho".into(),
            &format!(
                "{{\"model\":\"m\",\"seed\":{ODD},\"t\":0.10000000000000000555,\"messages\":[{{\"role\":\"user\",\"content\":\"ho\",\"n\":{ODD}}}]}}"
            ),
        );
        check("{\"a\":1,\"b\":2}", |new| drop(new.as_object_mut().unwrap().shift_remove("a")), "{\"b\":2}");
        check("{\"a\":1}", |new| new["b"] = json!("\"x"), "{\"a\":1,\"b\":\"\\\"x\"}");
        // the tree has one of the two
        check("{\"a\":1,\"a\":2}", |_| {}, "{\"a\":2}");
        check("[{\"a\":1,\"\\u0061\":2,\"b\": 3}]", |_| {}, "[{\"a\":2,\"b\":3}]");
        assert_eq!(rewritten("no json", &json!({"a": 1})), "{\"a\":1}");
        assert_eq!(rewritten("{\"a\":", &json!({"a": 1})), "{\"a\":1}");
    }

    #[test]
    fn elements_are_found_again_whatever_comes_and_goes() {
        let [a, b, c] = ["a", "b", "c"].map(|id| format!("{{\"id\":\"{id}\",\"x\":\"x\",\"n\":{ODD}}}"));
        let old = format!("[{a},{b},{c}]");
        let list = |new: &mut Value, change: &dyn Fn(&mut Vec<Value>)| change(new.as_array_mut().unwrap());
        let drop_first = |list: &mut Vec<Value>| drop(list.remove(0));
        let put_first = |list: &mut Vec<Value>| list.insert(0, json!({"id": "z"}));
        let push = |list: &mut Vec<Value>| list.push(json!({"id": "z"}));
        let change_second = |list: &mut Vec<Value>| list[1]["x"] = "y".into();
        let changed = b.replace("\"x\":\"x\"", "\"x\":\"y\"");
        let z = "{\"id\":\"z\"}";
        check(&old, |new| list(new, &drop_first), &format!("[{b},{c}]"));
        check(&old, |new| list(new, &put_first), &format!("[{z},{a},{b},{c}]"));
        check(&old, |new| list(new, &push), &format!("[{a},{b},{c},{z}]"));
        check(&old, |new| list(new, &change_second), &format!("[{a},{changed},{c}]"));
        check(
            &old,
            |new| {
                list(new, &|list| {
                    change_second(list);
                    drop_first(list);
                    push(list);
                })
            },
            &format!("[{changed},{c},{z}]"),
        );
    }

    /// Without a bound each level would be compared as a whole, several times.
    #[test]
    fn nested_lists_cost_no_more_than_flat_ones() {
        let items = format!("{}\"old\"", format!("{ODD},").repeat(20_000));
        let time = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let old = format!("{open}{items}{close}");
            let mut new = json::parse(&old).unwrap();
            let mut inner = &mut new;
            for _ in 1..depth {
                inner = &mut inner[0];
            }
            *inner.as_array_mut().unwrap().last_mut().unwrap() = "new".into();
            let began = std::time::Instant::now();
            assert_eq!(rewritten(&old, &new), old.replace("old", "new"));
            began.elapsed()
        };
        let (flat, nested) = (time(1), time(100));
        assert!(nested < flat * 20, "{nested:?}, {flat:?} without nesting");
    }

    #[test]
    fn texts_with_escapes_are_told_apart() {
        for (raw, text, want) in [
            (r#""a\nb""#, "a\nb", true),
            (r#""a\nb""#, "a\nc", false),
            (r#""a\nb""#, "ab\n", false),
            (r#""\u0041""#, "A", true),
            (r#""\u0041""#, "\\u0041", false),
            (r#""\\u0041""#, "\\u0041", true),
            (r#""é\n""#, "é\n", true),
            (r#""é\n""#, "\u{e8}\n", false),
            (r#""ab""#, "ab", true),
            (r#""ab""#, "a", false),
        ] {
            assert_eq!(same_scalar(raw, &text.into()), want, "{raw} {text}");
        }
    }

    #[test]
    fn numbers_that_a_hook_cannot_tell_apart_stay() {
        // as a script gives them back
        let new = json!({"id": 1234567890123456800u64, "x": 1.2345678901234568e22, "one": 1, "s": "new"});
        let old = format!("{{\"id\":1234567890123456789,\"x\":{ODD},\"one\":1.0,\"s\":\"old\"}}");
        assert_eq!(
            rewritten(&old, &new),
            format!("{{\"id\":1234567890123456789,\"x\":{ODD},\"one\":1.0,\"s\":\"new\"}}")
        );
        assert_eq!(rewritten("{\"id\":5}", &json!({"id": 6})), "{\"id\":6}");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[a\"\\\\é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[ab\"]{0,2}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Equal, where numbers are the same as floats.
    fn alike(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
            }
            (a, b) => a == b,
        }
    }

    proptest! {
        #[test]
        fn it_reads_as_what_it_was_to_be(old in values(), new in values(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&old) } else { serde_json::to_string(&old) };
            let text = text.unwrap();
            prop_assert_eq!(rewritten(&text, &old), text.clone());
            let got = json::parse(&rewritten(&text, &new)).unwrap();
            prop_assert!(alike(&got, &new), "{} {} {}", text, new, got);
        }
    }
}
