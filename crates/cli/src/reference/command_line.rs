//! The command line as a page. A command or an option without a text is a fault.

use crate::args::Args;
use clap::{Arg, Command, CommandFactory};

pub(super) fn page(title: &str, made: &str) -> String {
    let mut command = Args::command();
    command.build();
    let mut text = format!("# {title}\n\n{made}\n\n`hookgate help COMMAND` says the same in the terminal.\n");
    let commands: Vec<&Command> = shown(&command).collect();
    text.push_str("\n| command | does |\n|---|---|\n");
    for command in &commands {
        let name = command.get_name();
        text.push_str(&format!("| [`{name}`](#hookgate-{name}) | {} |\n", cell(&about(command))));
    }
    for command in commands {
        section(command, "hookgate", &mut text);
    }
    text
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn section(command: &Command, above: &str, text: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let level = if above == "hookgate" { "##" } else { "###" };
    text.push_str(&format!("\n{level} {name}\n\n{}.\n", about(command)));
    let usage = command.clone().render_usage().to_string();
    text.push_str(&format!("\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ")));
    let args: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
        // what all sub-commands take stands with the command above
        .filter(|arg| above == "hookgate" || !arg.is_global_set())
        .collect();
    if !args.is_empty() {
        text.push_str("\n| argument | |\n|---|---|\n");
        for arg in args {
            text.push_str(&format!("| {} | {} |\n", spelt(arg), cell(&meaning(arg, &name))));
        }
    }
    if let Some(after) = command.get_after_help() {
        let lines: Vec<String> = after.to_string().lines().map(cell).collect();
        text.push_str(&format!("\n{}\n", lines.join("\\\n")));
    }
    for sub in shown(command) {
        section(sub, &name, text);
    }
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    assert!(!about.is_empty(), "the command {} has no text", command.get_name());
    about
}

fn spelt(arg: &Arg) -> String {
    let value = || {
        let names: Vec<String> =
            arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
        names.join(" ")
    };
    let takes = arg.get_action().takes_values();
    match (arg.get_short(), arg.get_long()) {
        (short, Some(long)) => {
            let short = short.map(|short| format!("`-{short}` ")).unwrap_or_default();
            if takes { format!("{short}`--{long} {}`", value()) } else { format!("{short}`--{long}`") }
        }
        (Some(short), None) => format!("`-{short}`"),
        (None, None) => format!("`{}`", value()),
    }
}

fn meaning(arg: &Arg, command: &str) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    assert!(!help.is_empty(), "{command}: the argument {} has no text", arg.get_id());
    let words: Vec<String> = if arg.get_action().takes_values() {
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect()
    } else {
        Vec::new()
    };
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let mut text = help;
    if !words.is_empty() {
        text.push_str(&format!(": {}", words.join(", ")));
    }
    if arg.get_action().takes_values() && !defaults.is_empty() {
        text.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    text
}

/// A text that neither ends a table's cell nor begins an element.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
