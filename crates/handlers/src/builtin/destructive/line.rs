//! From text to a tree, within bounds; and the cut into words for text that has no tree.

use brush_parser::ast::Program;
use brush_parser::{Parser, ParserOptions, SourceInfo};
use std::io::Cursor;

/// Longest text that is parsed.
pub(super) const LONGEST: usize = 32 << 10;
/// Most words and signs that can open a nested part.
const MOST_OPENERS: usize = 96;

/// Most signs at which the parser tries two ways: what is in them is parsed twice where the line turns out wrong.
const MOST_DOUBLINGS: usize = 16;

/// Parses a line that stands inside `depth` others. None: it cannot be parsed, or it is longer or more nested than any
/// honest line.
pub(super) fn parse(line: &str, depth: usize) -> Option<Program> {
    if line.len() > LONGEST
        || openers(line) > MOST_OPENERS.saturating_sub(depth)
        || doublings(line) > MOST_DOUBLINGS
        || has_document(line)
    {
        return None;
    }
    let mut parser =
        Parser::new(Cursor::new(line.as_bytes()), &ParserOptions::default(), &SourceInfo::default());
    parser.parse_program().ok()
}

/// Does a here-document stand in the text? Those with an end were taken out before; with others the parser may never
/// come back (`<< ""` at the end of a text).
fn has_document(line: &str) -> bool {
    let mut run = 0;
    let mut escaped = false;
    let mut before = ' ';
    for c in line.chars().chain([' ']) {
        if c == '<' {
            if run == 0 {
                escaped = before == '\\';
            }
            run += 1;
        } else {
            if run >= 2 && (run != 3 || escaped) {
                return true;
            }
            run = 0;
        }
        before = c;
    }
    false
}

/// An upper bound of the nesting, without understanding the text: the parser is recursive, the stack is not endless.
fn openers(line: &str) -> usize {
    let signs = line.chars().filter(|c| matches!(c, '(' | '{' | '`' | '!')).count();
    let words = line
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|'))
        .filter(|word| {
            matches!(
                *word,
                "if" | "elif"
                    | "while"
                    | "until"
                    | "for"
                    | "case"
                    | "select"
                    | "then"
                    | "do"
                    | "function"
                    | "[["
            )
        })
        .count();
    signs + words
}

/// `(` where a command may begin is a subshell or arithmetic, `case` has patterns with and without bracket: each doubles
/// the time of a line that is wrong at its end.
fn doublings(line: &str) -> usize {
    let mut before = ' ';
    let mut found = 0;
    for c in line.chars() {
        if c == '(' && (before.is_whitespace() || matches!(before, '(' | ';' | '&' | '|' | '!' | '{' | '`')) {
            found += 1;
        }
        before = c;
    }
    found + 2 * line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| *word == "case").count()
}

/// Cuts text into commands of words, as well as that goes without a tree: quotes are minded, everything that can begin
/// a command begins one.
pub(super) fn cut(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut chars = line.chars();
    let end_word = |word: &mut String, commands: &mut Vec<Vec<String>>| {
        if !word.is_empty()
            && let Some(last) = commands.last_mut()
        {
            last.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('$' | '`' | '(' | ')', Some('"'))
            | ('(' | ')' | '`' | ';' | '&' | '|' | '\n' | '{' | '}', None) => {
                end_word(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            ('\'' | '"', None) => quote = Some(c),
            ('\\', None | Some('"')) => word.extend(chars.next().filter(|c| *c != '\n')),
            (c, None) if c.is_whitespace() => end_word(&mut word, &mut commands),
            (c, _) => word.push(c),
        }
    }
    end_word(&mut word, &mut commands);
    commands.retain(|command| !command.is_empty());
    commands
}
