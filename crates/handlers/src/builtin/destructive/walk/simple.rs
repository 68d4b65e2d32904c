//! One program with its words, assignments and redirections.

use super::super::call::{Text, base_name};
use super::super::{system, word};
use super::{Feed, Walk};
use brush_parser::ast::{AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, SimpleCommand};

impl Walk {
    pub(super) fn simple(&mut self, simple: &SimpleCommand, stdin: &Feed) -> Feed {
        let mut stdin = stdin.clone();
        let mut writes = Vec::new();
        let mut sets = Vec::new();
        let mut argv: Vec<String> = Vec::new();
        let mut items: Vec<&Item> = simple.prefix.iter().flat_map(|prefix| &prefix.0).collect();
        let word = simple.word_or_name.as_ref().map(|word| Item::Word(word.clone()));
        items.extend(&word);
        items.extend(simple.suffix.iter().flat_map(|suffix| &suffix.0));
        for item in items {
            if self.is_over() {
                return Feed::of(Text::Unknown);
            }
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect, &mut stdin, &mut writes),
                Item::Word(word) => argv.extend(word::expand(&word.value, self)),
                Item::AssignmentWord(assignment, word) => {
                    let value = match &assignment.value {
                        AssignmentValue::Scalar(value) => word::expand_whole(&value.value, self),
                        AssignmentValue::Array(values) => {
                            let all: Vec<String> = values
                                .iter()
                                .flat_map(|(_, value)| word::expand(&value.value, self))
                                .collect();
                            all.join(" ")
                        }
                    };
                    let (AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _)) =
                        &assignment.name;
                    if argv.is_empty() {
                        sets.push((name.clone(), value, assignment.append));
                    } else {
                        self.set(name, &value, assignment.append);
                        argv.push(format!("{}={value}", word.value.split('=').next().unwrap_or(name)));
                    }
                }
                Item::ProcessSubstitution(_, sub) => {
                    let text = self.list(&sub.list, &Feed::of(Text::Unknown));
                    let name = format!("/dev/fd/{}", 10 + self.files.len());
                    self.files.insert(name.clone(), text);
                    argv.push(name);
                }
            }
        }
        for (name, value, append) in &sets {
            self.note(system::variable(name, value, argv.first().map(String::as_str)));
            if argv.is_empty() {
                self.set(name, value, *append);
            }
        }
        let bare = argv.is_empty() && sets.is_empty();
        let head = argv.clone();
        let out = if argv.is_empty() { Feed::of(Text::None) } else { self.invoke(argv, &stdin) };
        self.empties(&head, bare, &writes, &out.text);
        self.written(&writes, &out.text, is_filler(&head));
        if writes.is_empty() { out } else { Feed::of(Text::None) }
    }

    pub(super) fn set(&mut self, name: &str, value: &str, append: bool) {
        let old = if append { self.vars.get(name).cloned().unwrap_or_default() } else { String::new() };
        if old.len() + value.len() < 4 << 10 && self.vars.len() < 256 {
            self.vars.insert(name.to_owned(), old + value);
        }
    }
}

fn is_filler(head: &[String]) -> bool {
    let name = head.first().map_or("", |name| base_name(name));
    name == "yes"
        || (name == "cat"
            && head.iter().any(|arg| matches!(arg.as_str(), "/dev/zero" | "/dev/urandom" | "/dev/random")))
}
