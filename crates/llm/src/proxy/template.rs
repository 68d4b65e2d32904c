//! Events that differ from the one before in nothing but their text, which is what most events of most streams do.
//!
//! Recognising them is several times cheaper than reading JSON. It is exact: what stands around the text was read as
//! JSON before, and a text without quotes, escapes and control characters can be nothing else in its place.

/// What stood around the text of the last event that was read.
#[derive(Debug)]
pub(super) struct Template<T> {
    before: String,
    behind: String,
    /// What else was read in it.
    read: Option<T>,
}

impl<T> Default for Template<T> {
    fn default() -> Self {
        Template { before: String::new(), behind: String::new(), read: None }
    }
}

impl<T: Copy> Template<T> {
    /// Remembers an event of which `text` is a borrowed part.
    pub(super) fn learn(&mut self, data: &str, text: &str, read: T) {
        self.read = None;
        let start = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
        let around =
            start.and_then(|start| Some((data.get(..start)?, data.get(start.checked_add(text.len())?..)?)));
        if let Some((before, behind)) =
            around.filter(|(before, behind)| before.ends_with('"') && behind.starts_with('"'))
        {
            self.before.clear();
            self.before.push_str(before);
            self.behind.clear();
            self.behind.push_str(behind);
            self.read = Some(read);
        }
    }

    /// The text of an event like the last one; never empty.
    #[inline]
    pub(super) fn text<'d>(&self, data: &'d str) -> Option<(&'d str, T)> {
        let read = self.read?;
        let text = data.strip_prefix(self.before.as_str())?.strip_suffix(self.behind.as_str())?;
        let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        (!text.is_empty() && text.bytes().all(plain)).then_some((text, read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_may_differ() {
        let mut template = Template::default();
        assert_eq!(template.text(r#"{"a":"x","n":1}"#), None);
        let data = r#"{"a":"x","n":1}"#;
        template.learn(data, data.get(6..7).unwrap(), 7);
        for (data, expected) in [
            (r#"{"a":"x","n":1}"#, Some("x")),
            (r#"{"a":"yz \u00e9 é","n":1}"#, None),
            (r#"{"a":"yz é","n":1}"#, Some("yz é")),
            (r#"{"a":"","n":1}"#, None),
            (r#"{"a":"y","b":"z","n":1}"#, None),
            (r#"{"a":"y\","n":1}"#, None),
            ("{\"a\":\"y\n\",\"n\":1}", None),
            (r#"{"a":"y","n":2}"#, None),
            (r#"{"b":"y","n":1}"#, None),
            (r#"{"a":","n":1}"#, None),
        ] {
            assert_eq!(template.text(data).map(|(text, _)| text), expected, "{data}");
        }
        template.learn(data, "elsewhere", 8);
        assert_eq!(template.text(data), None, "not a part of it");
    }
}
