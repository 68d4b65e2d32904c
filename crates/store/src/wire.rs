//! Bytes of rows and jobs: little-endian numbers, texts with their length in front. What is written here is also what
//! the chain hashes, so its form never changes without a new version.

use crate::error::StoreError;

/// The length that stands for "there is none".
const NONE: u32 = u32::MAX;

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // longer texts than 4 GiB are refused long before they come here
    let len = u32::try_from(bytes.len()).unwrap_or(NONE.saturating_sub(1));
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

pub(crate) fn put_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => put_text(out, text),
        None => out.extend_from_slice(&NONE.to_le_bytes()),
    }
}

/// Reads what was put, in the same order. Every read can fail: the bytes come from a disk.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    whole: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(whole: &'a [u8]) -> Reader<'a> {
        Reader { whole, at: 0 }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let end = self.at.saturating_add(count);
        let Some(taken) = self.whole.get(self.at..end) else { return Err(StoreError::Frame) };
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.take(N)?.try_into().map_err(|_| StoreError::Frame)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, StoreError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, StoreError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        let Some(bytes) = self.optional_bytes()? else { return Err(StoreError::Frame) };
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, StoreError> {
        let Some(text) = self.optional()? else { return Err(StoreError::Frame) };
        Ok(text)
    }

    pub(crate) fn optional(&mut self) -> Result<Option<&'a str>, StoreError> {
        let bytes = self.optional_bytes()?;
        bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| StoreError::Frame)).transpose()
    }

    fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>, StoreError> {
        match u32::from_le_bytes(self.array()?) {
            NONE => Ok(None),
            len => self.take(usize::try_from(len).unwrap_or(usize::MAX)).map(Some),
        }
    }

    /// What was read since a place.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.whole.get(start..self.at).unwrap_or_default()
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Nothing may be left over.
    pub(crate) fn end(&self) -> Result<(), StoreError> {
        if self.at == self.whole.len() { Ok(()) } else { Err(StoreError::Frame) }
    }
}
