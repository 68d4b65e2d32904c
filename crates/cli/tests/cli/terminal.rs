//! On a terminal: `script` (util-linux) makes one and passes on what is typed.

use crate::support::Place;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    seen: usize,
    _place: Place,
}

impl Terminal {
    fn open(place: Place, args: &str) -> Terminal {
        // a shell in between would take Ctrl-C for itself
        let line = format!("exec {} {args}", env!("CARGO_BIN_EXE_hookgate"));
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(place.dir()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(String::new()));
        let shared = screen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n) = output.read(&mut buffer)
                && n > 0
            {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        Terminal { child, keys, screen, seen: 0, _place: place }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this stands on the screen, after what was waited for before.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let began = Instant::now();
        loop {
            let screen = self.screen.lock().unwrap().clone();
            if let Some(at) = screen[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "`{text}` is not in:\n{}",
                &screen[self.seen..]
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end and gives the exit code.
    fn ends(mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "it does not end:\n{}",
                self.screen.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

const WATCH: &str = r#"{"label":"w","target":"chat","roles":["assistant"],"actions":[{"type":"warn","message":"saw {{content}}"}]}"#;

#[test]
fn a_conversation() {
    let place = Place::answering("You said {prompt}!").with("hooks/w.json", WATCH);
    let mut terminal = Terminal::open(place, "chat --script script.json --hooks hooks");
    terminal.shows("the script script.json answers");
    terminal.shows("1 hook in force");
    terminal.shows("> ");
    terminal.press("hello\r");
    terminal.shows("You said hello!");
    terminal.shows("\u{1b}[33msaw You said hello!");
    terminal.press("/hooks\r");
    terminal.shows("w      chat    message  actions  hooks/w.json#1");
    terminal.press("/history\r");
    terminal.shows("user (user): hello");
    terminal.shows("assistant (model): You said hello!");
    terminal.press("/reload\r");
    terminal.shows("1 hook in force");
    terminal.press("/nothing\r");
    terminal.shows("there is no command /nothing");
    terminal.press("/quit\r");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn a_broken_reload_keeps_the_hooks() {
    let place = Place::answering("a").with("hooks/w.json", WATCH);
    let file = place.path("hooks/w.json");
    let mut terminal = Terminal::open(place, "chat --script script.json --hooks hooks");
    terminal.shows("> ");
    std::fs::write(file, "{").unwrap();
    terminal.press("/reload\r");
    terminal.shows("hooks/w.json:1");
    terminal.shows("stay in force");
    terminal.press("x\r");
    terminal.shows("saw a");
    terminal.press("\u{4}");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let script = serde_json::json!({"turns":[{"when":"long","text":"word ".repeat(1000),"delay_ms":50},{"text":"short one"}]});
    let place = Place::new().with("script.json", &script.to_string());
    let mut terminal = Terminal::open(place, "chat --script script.json");
    terminal.shows("> ");
    terminal.press("long\r");
    terminal.shows("word");
    terminal.press("\u{3}");
    terminal.shows("[stopped]");
    terminal.shows("> ");
    terminal.press("now\r");
    terminal.shows("short one");
    terminal.shows("> ");
    terminal.press("\u{3}");
    terminal.shows("(Ctrl-D or /quit leaves)");
    terminal.shows("> ");
    terminal.press("\u{3}");
    terminal.shows("leave? [y/N]");
    terminal.press("y\r");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn strangers_do_not_drive_the_terminal() {
    let place = Place::answering("a\u{1b}]0;title\u{7}b");
    let mut terminal = Terminal::open(place, "chat --script script.json x");
    terminal.shows("a\\x1b]0;title\\x07b");
    assert_eq!(terminal.ends(), Some(0));
}
