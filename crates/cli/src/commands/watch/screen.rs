//! The terminal: keys in, the view out. Whatever ends the watch, the terminal is given back as it was: [`Screen`] does it
//! when it is dropped, and a panic does it before it is told of.

use super::draw::{self, Setting};
use super::follow::Follow;
use super::view::{View, Wish};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal;
use hookgate_store::query::Entry;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long it waits for a key at a time.
const KEYS: Duration = Duration::from_millis(100);
/// How often the trail is asked.
const LOOK: Duration = Duration::from_millis(250);

/// A terminal that is ours for a while.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> io::Result<Screen> {
        ratatui::try_init().map(Screen).inspect_err(|_| {
            // half of it may be done
            let _ = ratatui::try_restore();
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // a terminal that is gone needs nothing back
        let _ = ratatui::try_restore();
    }
}

/// Shows the trail until a person or a signal ends it.
pub(super) fn run(mut follow: Follow) -> Result<Exit, Failure> {
    let mut view = View::default();
    // what is wrong with the arguments is told before the screen is taken
    view.add(follow.look()?);
    let stopped = stops()?;
    let colours = terminal::wants_colour(&io::stdout());
    let place = follow.path().display().to_string();
    let mut screen = Screen::take()?;
    let mut looked = Instant::now();
    loop {
        let detail = chosen(&view, &follow);
        let setting = Setting { place: &place, colours, detail: detail.as_ref() };
        screen.0.draw(|frame| draw::draw(frame, &view, &setting))?;
        if let Ok(exit) = stopped.try_recv() {
            return Ok(exit);
        }
        let page = usize::from(screen.0.size()?.height).saturating_sub(4).max(1);
        let mut waits = KEYS;
        // all keys that are there, then one look at the screen
        while event::poll(waits)? {
            waits = Duration::ZERO;
            if let Event::Key(key) = event::read()?
                && let Some(end) = pressed(&mut view, key, page)
            {
                return Ok(end);
            }
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            look(&mut follow, &mut view);
        }
    }
}

fn look(follow: &mut Follow, view: &mut View) {
    match follow.look() {
        Ok(rows) => {
            view.add(rows);
            view.status = match follow.is_there() {
                true => String::new(),
                false => format!("no hook has left a record in {} yet; waiting", follow.path().display()),
            };
        }
        Err(failure) => view.status = format!("{failure}; trying again"),
    }
}

/// The chosen row, opened, where it is shown.
fn chosen(view: &View, follow: &Follow) -> Option<Entry> {
    let mut row = view.detail.then(|| view.row().cloned()).flatten()?;
    follow.open_detail(&mut row);
    Some(row)
}

/// Does what a key means. An exit ends it.
fn pressed(view: &mut View, key: KeyEvent, page: usize) -> Option<Exit> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let wish = match key.code {
        KeyCode::Char('c') if control => return Some(Exit::Done),
        KeyCode::Char('u') if control => {
            view.filter.clear();
            view.typing = false;
            return None;
        }
        KeyCode::Char(letter) if !control => Wish::Letter(letter),
        KeyCode::Up => Wish::Up,
        KeyCode::Down => Wish::Down,
        KeyCode::PageUp => Wish::PageUp(page),
        KeyCode::PageDown => Wish::PageDown(page),
        KeyCode::Home => Wish::Oldest,
        KeyCode::End => Wish::Newest,
        KeyCode::Backspace => Wish::Erase,
        KeyCode::Enter => Wish::Detail,
        KeyCode::Esc => Wish::Escape,
        _ => return None,
    };
    view.wish(wish).then_some(Exit::Done)
}

/// Told when a signal asks to stop.
fn stops() -> Result<Receiver<Exit>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _here = runtime.enter();
        Signals::all()?
    };
    let (tell, told) = mpsc::channel();
    let wait = move || {
        // nobody listens any more: the watch is over
        let _ = tell.send(runtime.block_on(signals.next()));
    };
    std::thread::Builder::new().name("hookgate-signals".into()).spawn(wait)?;
    Ok(told)
}
