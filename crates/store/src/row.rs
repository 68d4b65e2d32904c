//! A record as the store keeps it: what may stand in the open, and the detail sealed.
//!
//! [`Row`] borrows: on the way in from a [`Record`], later from the bytes of a spool's frame. Its canonical bytes are
//! what the chain hashes. The hook's key is not among them, because it goes when the hook is deleted, and neither is
//! the sealed detail, because a new key seals it anew; the first is bound by `dedup`, the second protects itself.

use crate::error::StoreError;
use crate::wire::{Reader, put_bytes, put_i64, put_optional, put_text, put_u64};
use hookgate_core::record::Record;
use ring::digest;
use std::borrow::Cow;

/// A hash of the chain, and of an input.
pub type Hash = [u8; 32];
/// What makes a record unique: a hash of the hook's key and the event's id.
pub type Dedup = [u8; 16];

/// The largest frame.
pub(crate) const LARGEST: usize = 1 << 20;

/// Says in the canonical bytes that a number of firings follows.
const SEVERAL: u8 = 2;

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The hook's key.
    pub hook: &'a str,
    /// Its name for people.
    pub label: &'a str,
    /// The version of its definition.
    pub version: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// The tenant.
    pub tenant_id: Option<&'a str>,
    /// The agent.
    pub agent_id: Option<&'a str>,
    /// The event's id.
    pub event_id: &'a str,
    /// The point.
    pub event: &'a str,
    /// The tool.
    pub tool_name: Option<&'a str>,
    /// The digest of the input.
    pub input_hash: Hash,
    /// How it ended.
    pub decision: &'a str,
    /// What lies behind it.
    pub cause: Option<&'a str>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// Hook and event.
    pub dedup: Dedup,
    /// The error in the open.
    pub error: Option<&'a str>,
    /// The refused fields, as a JSON list.
    pub refused_fields: Option<Cow<'a, str>>,
    /// What a question to a model cost.
    pub tokens: Option<u64>,
    /// How many firings it stands for.
    pub times: u64,
    /// The trace.
    pub trace_id: Option<&'a str>,
    /// When, in milliseconds since 1970.
    pub created_at: i64,
    /// The error in full.
    pub detail: Option<Sealed<'a>>,
}

/// A sealed text and the key that opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The key's id.
    pub key_id: Cow<'a, str>,
    /// Nonce, text, tag.
    pub bytes: Cow<'a, [u8]>,
}

/// A row with the bytes that it was read from.
#[derive(Debug, Clone)]
pub struct Framed<'a> {
    /// The row.
    pub row: Row<'a>,
    /// Its canonical bytes.
    pub canonical: &'a [u8],
    /// The part of them that says what happened: event, tool, decision, cause.
    pub(crate) kind: &'a [u8],
    /// The part that says which wording of the hook ran.
    pub(crate) wording: &'a [u8],
    /// The part that says for whom: session, tenant, agent.
    pub(crate) subject: &'a [u8],
}

/// A hash of a hook's key that stays when the key goes.
pub(crate) fn hook_tag(hook: &str) -> Dedup {
    half(digest::digest(&digest::SHA256, hook.as_bytes()).as_ref())
}

/// What makes a record of this hook and event unique.
pub(crate) fn dedup(tag: &Dedup, event_id: &str) -> Dedup {
    let mut both = digest::Context::new(&digest::SHA256);
    both.update(tag);
    both.update(event_id.as_bytes());
    half(both.finish().as_ref())
}

fn half(digest: &[u8]) -> Dedup {
    digest.first_chunk::<16>().copied().unwrap_or_default()
}

impl<'a> Row<'a> {
    /// The row of a record, still without its detail.
    pub(crate) fn of(record: &'a Record, tag: &Dedup, created_at: i64) -> Row<'a> {
        let refused = &record.refused_fields;
        let refused_fields =
            (!refused.is_empty()).then(|| Cow::Owned(serde_json::Value::from(refused.clone()).to_string()));
        Row {
            hook: &record.hook,
            label: &record.label,
            version: &record.hook_version,
            session_id: &record.session_id,
            tenant_id: record.tenant_id.as_deref(),
            agent_id: record.agent_id.as_deref(),
            event_id: &record.event_id,
            event: record.event,
            tool_name: record.tool_name.as_deref(),
            input_hash: record.input_hash.0,
            decision: hookgate_core::word::Word::as_str(record.decision),
            cause: record.cause.map(hookgate_core::word::Word::as_str),
            duration_us: u64::try_from(record.duration.as_micros()).unwrap_or(u64::MAX),
            dedup: dedup(tag, &record.event_id),
            error: record.error.as_deref(),
            refused_fields,
            tokens: record.tokens,
            times: record.times.max(1),
            trace_id: record.trace_id.as_deref(),
            created_at,
            detail: None,
        }
    }

    /// Writes the canonical bytes.
    pub(crate) fn put_canonical(&self, out: &mut Vec<u8>) {
        put_text(out, self.event);
        put_optional(out, self.tool_name);
        put_text(out, self.decision);
        put_optional(out, self.cause);
        put_text(out, self.label);
        put_text(out, self.version);
        put_text(out, self.session_id);
        put_optional(out, self.tenant_id);
        put_optional(out, self.agent_id);
        put_text(out, self.event_id);
        out.extend_from_slice(&self.input_hash);
        out.extend_from_slice(&self.dedup);
        put_u64(out, self.duration_us);
        put_i64(out, self.created_at);
        put_optional(out, self.error);
        put_optional(out, self.refused_fields.as_deref());
        // no number of tokens is as large as that
        put_u64(out, self.tokens.unwrap_or(u64::MAX));
        put_optional(out, self.trace_id);
        // most rows stand for one firing, as all did at first
        let several = self.times > 1;
        out.push(u8::from(self.detail.is_some()) | if several { SEVERAL } else { 0 });
        if several {
            put_u64(out, self.times);
        }
    }

    /// Writes all of it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.put_canonical(out);
        put_text(out, self.hook);
        if let Some(sealed) = &self.detail {
            put_text(out, &sealed.key_id);
            put_bytes(out, &sealed.bytes);
        }
    }
}

impl<'a> Framed<'a> {
    /// Reads what [`Row::put`] wrote.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Framed<'a>, StoreError> {
        let mut from = Reader::new(bytes);
        let (event, tool_name, decision, cause) =
            (from.text()?, from.optional()?, from.text()?, from.optional()?);
        let kind = from.since(0);
        let start = from.at();
        let (label, version) = (from.text()?, from.text()?);
        let wording = from.since(start);
        let start = from.at();
        let (session_id, tenant_id, agent_id) = (from.text()?, from.optional()?, from.optional()?);
        let subject = from.since(start);
        let mut row = Row {
            hook: "",
            label,
            version,
            session_id,
            tenant_id,
            agent_id,
            event_id: from.text()?,
            event,
            tool_name,
            input_hash: from.array()?,
            decision,
            cause,
            dedup: from.array()?,
            duration_us: from.u64()?,
            created_at: from.i64()?,
            error: from.optional()?,
            refused_fields: from.optional()?.map(Cow::Borrowed),
            tokens: Some(from.u64()?).filter(|tokens| *tokens != u64::MAX),
            trace_id: from.optional()?,
            times: 1,
            detail: None,
        };
        let flags = from.byte()?;
        let has_detail = flags & 1 != 0;
        if flags & SEVERAL != 0 {
            row.times = from.u64()?;
        }
        let canonical = from.since(0);
        row.hook = from.text()?;
        if has_detail {
            let (key_id, bytes) = (from.text()?, from.bytes()?);
            row.detail = Some(Sealed { key_id: key_id.into(), bytes: bytes.into() });
        }
        from.end()?;
        Ok(Framed { row, canonical, kind, wording, subject })
    }
}

impl Sealed<'_> {
    /// The same, with bytes of its own.
    pub(crate) fn into_owned(self) -> Sealed<'static> {
        Sealed { key_id: self.key_id.into_owned().into(), bytes: self.bytes.into_owned().into() }
    }
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

/// The bytes of hex digits, if there are exactly so many.
pub(crate) fn from_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digits = hex.as_bytes();
    let mut bytes = [0; N];
    if digits.len() != N.saturating_mul(2) {
        return None;
    }
    // one look at the end instead of one a digit
    let mut wrong = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = *pair else { return None };
        let (high, low) = (digit(high), digit(low));
        wrong |= high | low;
        *byte = high << 4 | low & 15;
    }
    (wrong < 16).then_some(bytes)
}

/// The value of a hex digit; 16 or more for anything else.
fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte.saturating_sub(b'0'),
        b'a'..=b'f' => byte.saturating_sub(b'a').saturating_add(10),
        b'A'..=b'F' => byte.saturating_sub(b'A').saturating_add(10),
        _ => 0xf0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row<'static> {
        Row {
            hook: "no-rm",
            label: "no rm",
            version: "0123456789ab",
            session_id: "s-1",
            tenant_id: None,
            agent_id: Some("builder"),
            event_id: "e-1",
            event: "pre_tool_use",
            tool_name: Some("exec"),
            input_hash: [7; 32],
            decision: "error",
            cause: Some("error"),
            duration_us: 1234,
            dedup: dedup(&hook_tag("no-rm"), "e-1"),
            error: Some("short"),
            refused_fields: Some("[\"a\"]".into()),
            tokens: Some(0),
            times: 1,
            trace_id: Some("t"),
            created_at: -5,
            detail: Some(Sealed { key_id: "k1".into(), bytes: vec![1, 2, 3].into() }),
        }
    }

    #[test]
    fn what_is_put_is_read() {
        let bare = Row { detail: None, tokens: None, tool_name: None, trace_id: None, ..row() };
        let often = Row { times: 3, ..row() };
        for row in [row(), bare, often] {
            let mut bytes = Vec::new();
            row.put(&mut bytes);
            let read = Framed::read(&bytes).unwrap();
            assert_eq!(read.row, row);
            let mut canonical = Vec::new();
            row.put_canonical(&mut canonical);
            assert_eq!(read.canonical, canonical);
            // no cut and no addition is read as something
            for cut in 0..bytes.len() {
                assert!(Framed::read(&bytes[..cut]).is_err(), "{cut}");
            }
            bytes.push(0);
            assert!(Framed::read(&bytes).is_err());
        }
    }

    #[test]
    fn the_hash_covers_neither_key_of_the_hook_nor_seal() {
        let canonical = |row: &Row<'_>| {
            let mut bytes = Vec::new();
            row.put_canonical(&mut bytes);
            bytes
        };
        let other_seal = Sealed { key_id: "k2".into(), bytes: vec![9].into() };
        assert_eq!(canonical(&row()), canonical(&Row { hook: "", detail: Some(other_seal), ..row() }));
        assert_ne!(canonical(&row()), canonical(&Row { detail: None, ..row() }));
        assert_ne!(canonical(&row()), canonical(&Row { label: "no r", version: "m0123456789ab", ..row() }));
    }

    #[test]
    fn hex_digits_go_both_ways() {
        let bytes: Vec<u8> = (0..=255).collect();
        for chunk in bytes.chunks(16) {
            assert_eq!(from_hex::<16>(&hex(chunk)).unwrap(), *chunk);
        }
        assert!(from_hex::<2>("12g4").is_none() && from_hex::<2>("12345").is_none());
    }
}
