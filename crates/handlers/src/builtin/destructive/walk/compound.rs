//! Loops, branches, groups and functions.

use super::super::budget::PARSED;
use super::super::call::{Text, UNKNOWN, danger};
use super::super::{word, wrapper};
use super::{Feed, Walk};
use brush_parser::ast::{CompoundCommand, CompoundList, FunctionDefinition, SeparatorOperator};
use std::rc::Rc;

/// Most turns of a loop that are looked at.
const MOST_TURNS: usize = 8;

impl Walk {
    pub(super) fn define(&mut self, function: &FunctionDefinition) {
        let name = function.fname.value.clone();
        let body = function.body.0.to_string();
        self.budget.spend(body.len() * PARSED);
        if calls_itself_twice(&body, &name) {
            self.note(danger(
                "power",
                format!("the function `{name}` starts itself again and again (fork bomb)"),
            ));
        }
        self.functions.insert(name, Rc::new(function.body.clone()));
    }

    pub(super) fn compound(&mut self, compound: &CompoundCommand, stdin: &Feed) -> Text {
        if self.is_over() {
            return Text::Unknown;
        }
        let Some(_level) = self.budget.enter() else { return Text::Unknown };
        self.compounds += 1;
        let out = self.inside(compound, stdin);
        self.compounds -= 1;
        out
    }

    fn inside(&mut self, compound: &CompoundCommand, stdin: &Feed) -> Text {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, stdin),
            CompoundCommand::Subshell(sub) => {
                let Some((vars, cwd)) = self.state() else { return Text::Unknown };
                let out = self.list(&sub.list, stdin);
                (self.vars, self.cwd) = (vars, cwd);
                out
            }
            CompoundCommand::ForClause(each) => {
                let values: Vec<String> = match &each.values {
                    Some(words) => words.iter().flat_map(|word| word::expand(&word.value, self)).collect(),
                    None => self.args.clone().unwrap_or_default(),
                };
                for value in values.iter().take(MOST_TURNS) {
                    if self.is_over() {
                        break;
                    }
                    self.vars.insert(each.variable_name.clone(), value.clone());
                    self.list(&each.body.list, stdin);
                }
                Text::Unknown
            }
            CompoundCommand::CaseClause(case) => {
                word::expand(&case.value.value, self);
                for item in case.cases.iter().filter_map(|item| item.cmd.as_ref()) {
                    self.list(item, stdin);
                }
                Text::Unknown
            }
            CompoundCommand::IfClause(branch) => {
                self.list(&branch.condition, stdin);
                self.list(&branch.then, stdin);
                for other in branch.elses.iter().flatten() {
                    other.condition.iter().for_each(|condition| {
                        self.list(condition, stdin);
                    });
                    self.list(&other.body, stdin);
                }
                Text::Unknown
            }
            CompoundCommand::WhileClause(turn) | CompoundCommand::UntilClause(turn) => {
                self.turns(&turn.0, &turn.1.list, stdin);
                Text::Unknown
            }
            CompoundCommand::Arithmetic(_) => Text::None,
            CompoundCommand::ArithmeticForClause(each) => {
                if starts_in_background(&each.body.list) && each.condition.is_none() {
                    self.note(danger("power", "an endless loop that starts programs in the background"));
                }
                self.list(&each.body.list, stdin)
            }
        }
    }

    /// `while` and `until`.
    fn turns(&mut self, condition: &CompoundList, body: &CompoundList, stdin: &Feed) {
        let text = condition.to_string();
        if !self.budget.spend(text.len() * PARSED) {
            return;
        }
        if matches!(text.trim().trim_end_matches(';'), "true" | ":") && starts_in_background(body) {
            self.note(danger("power", "an endless loop that starts programs in the background"));
        }
        let read = self.reads(&text, stdin);
        self.list(condition, stdin);
        let inner = if read { Feed::of(Text::None) } else { stdin.clone() };
        self.list(body, &inner);
    }

    /// `while read -r name`: the names are what the feed lists.
    fn reads(&mut self, condition: &str, stdin: &Feed) -> bool {
        let mut words = condition.split_whitespace().skip_while(|word| *word != "read");
        if words.next().is_none() {
            return false;
        }
        let value =
            wrapper::listed(stdin, self.cwd()).into_iter().next().unwrap_or_else(|| UNKNOWN.to_string());
        for name in words.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            self.vars.insert(name.to_owned(), value.clone());
        }
        true
    }
}

/// A body with a pipe or a background job in which the function calls itself.
fn calls_itself_twice(text: &str, name: &str) -> bool {
    let calls = text
        .split(|c: char| {
            c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '{' | '}' | '"' | '`')
        })
        .filter(|word| *word == name)
        .count();
    calls >= 1 && (text.contains('|') || text.contains('&')) && (calls >= 2 || text.contains(" &"))
}

fn starts_in_background(list: &CompoundList) -> bool {
    list.0.iter().any(|item| matches!(item.1, SeparatorOperator::Async))
}
