//! Cuts a line into commands of words.

use super::{Command, DEEPEST};

/// Cuts a line into commands.
pub(super) fn cut(text: &str, depth: u32) -> Vec<Command> {
    let mut done: Vec<Command> = Vec::new();
    let mut now = Command { words: Vec::new(), piped: false };
    let mut word: Option<String> = None;
    let mut quote = None;
    // most substitutions that are opened
    let mut inner_left = 32_u32;
    let mut chars = text.chars().peekable();
    let end = |now: &mut Command, word: &mut Option<String>| now.words.extend(word.take());
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('$', Some('"')) if chars.peek() == Some(&'(') && depth < DEEPEST && inner_left > 0 => {
                inner_left -= 1;
                let inner: String = chars.clone().skip(1).take_while(|c| *c != ')').take(4096).collect();
                done.extend(cut(&inner.replace('"', ""), depth + 1));
                word.get_or_insert_default().push(c);
            }
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('`' | '^', None) => {
                if let Some(next) = chars.next().filter(|c| *c != '\n' && *c != '\r') {
                    word.get_or_insert_default().push(next);
                }
            }
            ('#', None) if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ('>', None) => {
                let fd = word.take_if(|word| matches!(word.as_str(), "1" | "2" | "*"));
                end(&mut now, &mut word);
                let twice = chars.next_if_eq(&'>').is_some();
                now.words.push(match (fd.as_deref(), twice) {
                    (Some("2"), _) => "2>".to_owned(),
                    (_, true) => ">>".to_owned(),
                    (_, false) => ">".to_owned(),
                });
            }
            (';' | '\n' | '\r' | '&' | '|' | '(' | ')' | '{' | '}', None) => {
                end(&mut now, &mut word);
                let pipe = c == '|' && chars.peek() != Some(&'|');
                let before = now.piped && now.words.is_empty();
                let opens = matches!(c, '{' | '(')
                    && (now
                        .words
                        .first()
                        .is_some_and(|word| word == "%" || word.eq_ignore_ascii_case("foreach-object"))
                        || before);
                done.push(std::mem::replace(
                    &mut now,
                    Command { words: Vec::new(), piped: pipe || before || opens },
                ));
            }
            (c, None) if c.is_whitespace() => end(&mut now, &mut word),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut now, &mut word);
    done.push(now);
    done.into_iter().filter_map(trimmed).collect()
}

/// Without the words that may stand before a command; its name in lower case, without folder and `.exe`.
fn trimmed(command: Command) -> Option<Command> {
    let mut words = command.words;
    let mut skipped = 0;
    loop {
        let words = words.get(skipped..)?;
        let first = words.first()?.to_ascii_lowercase();
        let skip = match first.as_str() {
            "do" | "else" | "@echo" | "&" | "." | "try" | "finally" | "then" | "return" | "not" | "@"
            | "-" | "sudo" => 1,
            "if" => match words.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
                Some("exist" | "defined" | "errorlevel") => 3,
                Some("not") => 4,
                _ => 1,
            },
            first if first.starts_with('$') && words.get(1).is_some_and(|word| word == "=") => 2,
            _ => break,
        };
        if words.len() <= skip {
            return None;
        }
        skipped += skip;
    }
    words.drain(..skipped);
    let first = words.first_mut()?;
    let lower = first.trim_start_matches('@').to_ascii_lowercase();
    let name = if lower.contains(":/") || lower.contains(":\\") || lower.starts_with('.') {
        lower.rsplit(['/', '\\']).next().unwrap_or(&lower)
    } else {
        lower.rsplit('\\').next().unwrap_or(&lower)
    };
    *first = name.trim_end_matches(".exe").to_owned();
    Some(Command { words, piped: command.piped })
}

pub(super) fn unquoted(text: &str) -> String {
    let mut quote = None;
    text.chars()
        .filter(|c| {
            match quote {
                Some(open) if open == *c => quote = None,
                None if matches!(c, '"' | '\'') => quote = Some(*c),
                _ => {}
            }
            quote.is_none()
        })
        .collect()
}
