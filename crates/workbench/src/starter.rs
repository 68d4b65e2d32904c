//! What a new folder begins with: a configuration, rules, their tests, and a page that says how they go together. Only
//! texts; nothing is written here.

/// Something to begin with.
#[derive(Debug)]
pub struct Kit {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its files in the hooks folder.
    files: &'static [(&'static str, &'static str)],
    /// What turns it on in the configuration, if it is part of the program.
    builtin: &'static str,
}

/// All of them.
pub static KITS: &[Kit] = &[
    Kit {
        name: "no-destructive",
        summary: "a script looks at shell commands before they run, and blocks those that destroy",
        files: &[
            ("no-destructive.json", include_str!("../starter/no-destructive/no-destructive.json")),
            ("no-destructive.js", include_str!("../starter/no-destructive/no-destructive.js")),
            ("no-destructive.test.json", include_str!("../starter/no-destructive/no-destructive.test.json")),
        ],
        builtin: "",
    },
    Kit {
        name: "secrets",
        summary: "hooks of the program: no credential leaves in a tool's input, none is shown in an answer",
        files: &[("secrets.test.json", include_str!("../starter/secrets/secrets.test.json"))],
        builtin: "\
# Tools do not run with a credential in their input.
secrets = true
# The gateway puts a mark in the place of a credential in an answer; `hookgate chat` withdraws the answer.
secrets_stream = { redact = true }
",
    },
    Kit {
        name: "policy-text",
        summary: "a command adds a notice to each answer",
        files: &[
            ("policy-text.json", include_str!("../starter/policy-text/policy-text.json")),
            ("notice.txt", include_str!("../starter/policy-text/notice.txt")),
            ("policy-text.test.json", include_str!("../starter/policy-text/policy-text.test.json")),
        ],
        builtin: "",
    },
    Kit {
        name: "slack-orders",
        summary: "a webhook tells the team of each order, in the background",
        files: &[
            ("slack-orders.json", include_str!("../starter/slack-orders/slack-orders.json")),
            ("slack-orders.test.json", include_str!("../starter/slack-orders/slack-orders.test.json")),
        ],
        builtin: "",
    },
];

/// What a folder begins with where nothing else is asked for.
pub const USUAL: &str = "no-destructive";

/// A file to be written, by its path in the new folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path, with slashes.
    pub path: String,
    /// The text.
    pub text: String,
}

/// The files of a folder that begins with these, in the order in which one would read them.
pub fn files(kits: &[&Kit]) -> Vec<File> {
    let mut config = include_str!("../starter/hookgate.toml").to_owned();
    let mut page = include_str!("../starter/README.md").to_owned();
    let mut of_kits = Vec::new();
    for kit in kits {
        config.push_str(kit.builtin);
        page.push_str(&format!("| {} | {} |\n", kit.name, kit.summary));
        let file =
            |(name, text): &(&str, &str)| File { path: format!("hooks/{name}"), text: (*text).to_owned() };
        of_kits.extend(kit.files.iter().map(file));
    }
    let first = [("hookgate.toml", config), ("hooks/README.md", page)];
    let first = first.into_iter().map(|(path, text)| File { path: path.to_owned(), text });
    first.chain(of_kits).collect()
}
