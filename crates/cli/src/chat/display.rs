//! What is shown: one of two forms behind one lock, because events come from the thread that talks to the model.

use super::json_lines::JsonLines;
use super::screen::Screen;
use hookgate_chat::{ChatEvent, Outcome};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use tokio::sync::Notify;

/// The display. Clones share it.
#[derive(Clone)]
pub(crate) struct Display {
    form: Arc<Mutex<Form>>,
    lost: Arc<Notify>,
}

enum Form {
    Screen(Screen),
    Json(JsonLines),
}

impl Display {
    /// JSON lines on standard output, or text for people.
    pub(crate) fn new(json: bool, verbose: bool) -> Display {
        let form =
            if json { Form::Json(JsonLines::stdout()) } else { Form::Screen(Screen::standard(verbose)) };
        Display { form: Arc::new(Mutex::new(form)), lost: Arc::default() }
    }

    /// Shows every event of a service.
    pub(crate) fn observer(&self) -> impl Fn(&ChatEvent<'_>) + Send + Sync + 'static {
        let display = self.clone();
        move |event| {
            let mut form = display.lock();
            match &mut *form {
                Form::Screen(screen) => screen.event(event),
                Form::Json(lines) => lines.event(event),
            }
            if form.is_lost() {
                display.lost.notify_one();
            }
        }
    }

    /// Comes back when standard output cannot be written any more.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// The error of standard output, once.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        match &mut *self.lock() {
            Form::Screen(screen) => screen.take_error(),
            Form::Json(lines) => lines.take_error(),
        }
    }

    /// A line or lines for the person, on standard error. Programs are not told.
    pub(crate) fn tell(&self, text: &str) {
        if let Form::Screen(screen) = &mut *self.lock() {
            screen.tell(text);
        }
    }

    /// A line beside the point, on standard error.
    pub(crate) fn whisper(&self, text: &str) {
        if let Form::Screen(screen) = &mut *self.lock() {
            screen.whisper(text);
        }
    }

    /// The answer is over, or a hook ended it.
    pub(crate) fn ended(&self, outcome: &Outcome) {
        match &mut *self.lock() {
            Form::Screen(screen) => screen.end_line(),
            Form::Json(lines) => lines.ended(outcome),
        }
    }

    /// It failed. The text itself is reported by the caller; programs get it in the last line.
    pub(crate) fn failed(&self, message: &str) {
        // a writer that is stuck holds the lock: then there is nobody to tell
        let form = match self.form.try_lock() {
            Ok(form) => Some(form),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut form) = form {
            match &mut *form {
                Form::Screen(screen) => screen.end_line(),
                Form::Json(lines) => lines.failed(message),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Form> {
        self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Form {
    fn is_lost(&self) -> bool {
        match self {
            Form::Screen(screen) => screen.is_lost(),
            Form::Json(lines) => lines.is_lost(),
        }
    }
}
