//! Which tool call a piece belongs to, for wires whose servers disagree about it.
//!
//! By the book every piece has an `index`, and the first of each call has `id` and `name`. Servers in the field leave
//! the index out or null, give every call index 0, repeat id and name in every piece, make a new id for every piece,
//! or send no id at all. The rules here read all of these; the tests name the cases.

use crate::Delta;

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct CallPieces {
    calls: Vec<Call>,
    /// The call that the last piece belonged to.
    last: usize,
}

#[derive(Debug)]
struct Call {
    /// The index that the server gave.
    wire_index: Option<u64>,
    id: Option<String>,
    name: String,
}

/// One piece as it was written; empty texts count as missing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// Where a piece belongs, and what it says that was not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    /// Which call of the answer, from 0.
    pub(crate) index: u32,
    /// The call begins with this piece.
    pub(crate) new: bool,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

impl CallPieces {
    /// The delta for this piece, or `None` when it says nothing new.
    pub(super) fn add(&mut self, piece: Piece<'_>, arguments: String) -> Option<Delta> {
        let Placed { index, new, id, name } = self.place(piece)?;
        let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
        let news = new || id.is_some() || name.is_some() || !arguments.is_empty();
        news.then_some(Delta::ToolCall { index, id, name, arguments })
    }

    /// Finds the call of a piece; a call of its own if there is none.
    pub(crate) fn place<'a>(&mut self, piece: Piece<'a>) -> Option<Placed<'a>> {
        self.put(self.find(piece), piece)
    }

    /// Begins a call with this piece, whatever calls there are.
    pub(crate) fn begin<'a>(&mut self, piece: Piece<'a>) -> Option<Placed<'a>> {
        self.put(None, piece)
    }

    fn put<'a>(&mut self, known: Option<usize>, piece: Piece<'a>) -> Option<Placed<'a>> {
        self.last = known.unwrap_or(self.calls.len());
        if known.is_none() {
            self.calls.push(Call { wire_index: piece.index, id: None, name: String::new() });
        }
        let index = u32::try_from(self.last).ok()?;
        let call = self.calls.get_mut(self.last)?;
        let id = piece.id.filter(|_| call.id.is_none());
        let name = piece.name.filter(|name| *name != call.name);
        call.id = call.id.take().or_else(|| id.map(str::to_owned));
        call.name.push_str(name.unwrap_or_default());
        Some(Placed { index, new: known.is_none(), id, name })
    }

    /// Ids for the calls that never got one, so that results can be told apart. `answer` makes them unique.
    pub(super) fn missing_ids(&mut self, answer: &str, out: &mut Vec<Delta>) {
        let nameless = self.calls.iter_mut().zip(0u32..).filter(|(call, _)| call.id.is_none());
        for (call, index) in nameless {
            let id =
                if answer.is_empty() { format!("call_{index}") } else { format!("call_{answer}_{index}") };
            call.id = Some(id.clone());
            out.push(Delta::ToolCall { index, id: Some(id), name: None, arguments: String::new() });
        }
    }

    fn find(&self, piece: Piece<'_>) -> Option<usize> {
        // Two indexes are two calls, even if a server gives both the same id.
        let same_index = |call: &Call| {
            piece.index.is_none() || call.wire_index.is_none() || call.wire_index == piece.index
        };
        let by_id = piece.id.and_then(|id| {
            self.calls.iter().rposition(|call| call.id.as_deref() == Some(id) && same_index(call))
        });
        if by_id.is_some() {
            return by_id;
        }
        match piece.index {
            Some(index) => {
                let at = self.calls.iter().rposition(|call| call.wire_index == Some(index))?;
                // Another id with a name begins a new call; another id alone is a server that invents one each time.
                let other_id = piece.id.is_some() && self.calls.get(at)?.id.is_some();
                (!(other_id && piece.name.is_some())).then_some(at)
            }
            None if piece.id.is_some() || self.calls.is_empty() => None,
            None => {
                let same_name =
                    piece.name.is_none_or(|name| self.calls.get(self.last).is_some_and(|c| c.name == name));
                same_name.then_some(self.last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Answer;

    type Written = (Option<u64>, Option<&'static str>, Option<&'static str>, &'static str);

    fn check(case: &str, pieces: &[Written], expected: &[(&str, &str, &str)]) {
        let (mut calls, mut answer, mut out) = (CallPieces::default(), Answer::default(), Vec::new());
        for (index, id, name, arguments) in pieces {
            out.extend(calls.add(Piece { index: *index, id: *id, name: *name }, (*arguments).into()));
        }
        calls.missing_ids("a1", &mut out);
        out.into_iter().for_each(|delta| answer.push(delta));
        let got: Vec<_> =
            answer.message.tool_calls.iter().map(|c| (&*c.id, &*c.name, &*c.arguments)).collect();
        assert_eq!(got, expected, "{case}");
    }

    #[test]
    fn every_way_to_write_pieces_is_read() {
        let (a, b) = (Some("a"), Some("b"));
        let (sh, ls) = (Some("sh"), Some("ls"));
        let (zero, one) = (Some(0), Some(1));
        check(
            "by the book",
            &[(zero, a, sh, ""), (zero, None, None, "{"), (zero, None, None, "}")],
            &[("a", "sh", "{}")],
        );
        check(
            "interleaved",
            &[
                (zero, a, sh, ""),
                (one, b, ls, ""),
                (zero, None, None, "1"),
                (one, None, None, "2"),
                (zero, None, None, "3"),
            ],
            &[("a", "sh", "13"), ("b", "ls", "2")],
        );
        check(
            "no index",
            &[(None, a, sh, "1"), (None, None, None, "2"), (None, b, sh, "3")],
            &[("a", "sh", "12"), ("b", "sh", "3")],
        );
        check("id and name repeated", &[(zero, a, sh, "1"), (zero, a, sh, "2")], &[("a", "sh", "12")]);
        check(
            "repeated without index",
            &[(None, a, sh, "1"), (None, b, ls, "2"), (None, a, sh, "3")],
            &[("a", "sh", "13"), ("b", "ls", "2")],
        );
        check(
            "index always 0",
            &[(zero, a, sh, "1"), (zero, b, sh, "2"), (zero, None, None, "3")],
            &[("a", "sh", "1"), ("b", "sh", "23")],
        );
        check("a new id each time", &[(zero, a, sh, "1"), (zero, b, None, "2")], &[("a", "sh", "12")]);
        check(
            "no id",
            &[(zero, None, sh, "1"), (one, None, ls, "2")],
            &[("call_a1_0", "sh", "1"), ("call_a1_1", "ls", "2")],
        );
        check(
            "neither",
            &[(None, None, sh, "1"), (None, None, None, "2"), (None, None, ls, "3")],
            &[("call_a1_0", "sh", "12"), ("call_a1_1", "ls", "3")],
        );
        check("id late", &[(zero, None, sh, "1"), (zero, a, None, "2")], &[("a", "sh", "12")]);
        check(
            "name in pieces",
            &[(zero, a, Some("read"), ""), (zero, None, Some("_file"), "1")],
            &[("a", "read_file", "1")],
        );
        check(
            "one id for two",
            &[(zero, a, sh, "1"), (one, a, ls, "2"), (zero, a, None, "3")],
            &[("a", "sh", "13"), ("a", "ls", "2")],
        );
        check(
            "indexes from 1",
            &[(one, a, sh, "1"), (Some(2), b, ls, "2")],
            &[("a", "sh", "1"), ("b", "ls", "2")],
        );
    }
}
