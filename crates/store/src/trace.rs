//! Which hooks an event concerned and which filters ruled others out, as the database keeps it: sealed, because it shows
//! values of the event.

use crate::error::StoreError;
use crate::row::{Dedup, Sealed, dedup, hook_tag};
use crate::wire::{Reader, put_bytes, put_i64, put_text};

/// A trace on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrace<'a> {
    /// The event's id.
    pub event_id: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// When it came.
    pub created_at: i64,
    /// The trace as JSON, sealed.
    pub payload: Sealed<'a>,
}

/// A trace as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTrace {
    /// The event's id.
    pub event_id: String,
    /// The session.
    pub session_id: String,
    /// When it came, in milliseconds since 1970.
    pub created_at: i64,
    /// The trace as JSON, sealed.
    pub payload: Sealed<'static>,
}

/// What a trace's seal is bound to.
pub(crate) fn bound_to(session_id: &str, event_id: &str) -> Dedup {
    dedup(&hook_tag(session_id), event_id)
}

impl<'a> NewTrace<'a> {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self.event_id);
        put_text(out, self.session_id);
        put_i64(out, self.created_at);
        put_text(out, &self.payload.key_id);
        put_bytes(out, &self.payload.bytes);
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Result<NewTrace<'a>, StoreError> {
        let mut from = Reader::new(bytes);
        let trace = NewTrace {
            event_id: from.text()?,
            session_id: from.text()?,
            created_at: from.i64()?,
            payload: Sealed { key_id: from.text()?.into(), bytes: from.bytes()?.into() },
        };
        from.end()?;
        Ok(trace)
    }

    pub(crate) fn stored(&self) -> StoredTrace {
        StoredTrace {
            event_id: self.event_id.to_owned(),
            session_id: self.session_id.to_owned(),
            created_at: self.created_at,
            payload: self.payload.clone().into_owned(),
        }
    }
}
