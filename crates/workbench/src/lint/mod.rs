//! What is allowed in hook files and probably not meant: rules that look at hooks and at how they are written. A rule is
//! a file here and a line in [`RULES`]; `docs/check.md` shows each with an example. Nothing is decided or refused here.

mod rule;
mod tool_names;
mod written;

mod canonical_tool_name;
mod command_missing;
mod condition_has;
mod condition_pattern;
mod duplicate_label;
mod empty_match;
mod glob_as_pattern;
mod never_fires;
mod no_effect;
mod plain_http;
mod prompt_cap;
mod shadowed;
mod timeout_too_long;
mod unknown_variable;

pub use rule::{AGENT_CANNOT, DOOR_CANNOT, Rule, warnings};
pub use written::Written;

/// All rules. Those without a look of their own are noticed by whoever reads the files.
pub static RULES: &[Rule] = &[
    canonical_tool_name::RULE,
    glob_as_pattern::RULE,
    rule::noticed("matcher-list", "a matcher that is meant as a list and is one pattern"),
    empty_match::RULE,
    rule::noticed("pattern-reading", "a pattern that JavaScript reads in another way than it looks"),
    condition_has::RULE,
    condition_pattern::RULE,
    rule::noticed("never-there", "a condition that asks for a member which no event of its point has"),
    never_fires::RULE,
    no_effect::RULE,
    shadowed::RULE,
    duplicate_label::RULE,
    unknown_variable::RULE,
    prompt_cap::RULE,
    timeout_too_long::RULE,
    plain_http::RULE,
    command_missing::RULE,
    rule::noticed(AGENT_CANNOT, "what a coding agent of `--door` cannot do"),
    rule::noticed(DOOR_CANNOT, "what another door of `--door` cannot do"),
];
