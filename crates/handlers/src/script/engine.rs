//! One JavaScript engine that answers one call after the other, each from a clean state.
//!
//! Two machines: one can compile but runs nothing, one can run but not compile, so that no script makes code from
//! text. Each lives in an [`Arena`] of its own. A script is compiled once, loaded into the blank running machine, and
//! what the arena then holds is the script's image: every call begins as a copy of it.
//!
//! A call is bounded by a deadline, which the engine asks about every few thousand steps, and by memory. Neither
//! reaches every loop inside a built-in function: whoever must have an answer in time runs this in a process that can
//! be killed, as [`super::pool`] does, or, in a one-shot process, ends the whole process.

use super::arena::{Arena, Image};
use super::bytecode::{self, Bytecode, Program};
use rquickjs::context::{Intrinsic, intrinsic};
use rquickjs::{Array, CatchResultExt, Context, Ctx, Error, Function, Object, Persistent, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The largest memory limit that a script may be given.
pub(super) const MOST_MEMORY: usize = 128 << 20;
/// The longest error text, in characters.
pub(super) const LONGEST_ERROR: usize = 256;
/// The largest result, in bytes.
const LARGEST_RESULT: usize = 64 * 1024;
/// What is kept of a console, in bytes.
const CONSOLE: usize = 4096;
/// Memory for compiling and loading.
const COMPILING: usize = 64 << 20;
/// Recursion ends here.
const STACK: usize = 512 * 1024;
/// Images of scripts that are kept, in bytes all together.
const IMAGES: usize = 24 << 20;
/// The name of every script in positions and stack traces. It is no path.
const NAME: &str = "script";

type Running = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);
type Compiling = (intrinsic::Eval, intrinsic::RegExpCompiler, intrinsic::RegExp);

/// One question to a script.
#[derive(Debug)]
pub struct Question<'a> {
    /// The event's JSON text.
    pub event: &'a [u8],
    /// When time is up.
    pub deadline: Instant,
    /// How much memory it may use beyond its event.
    pub memory: usize,
    /// The time that it sees, in milliseconds since 1970.
    pub now: u64,
    /// Where its random numbers begin.
    pub seed: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a value, as JSON text. Half surrogate pairs stand in it as escapes.
    Value(String),
    /// With a value that JSON has no text for, as `undefined`.
    Nothing,
    /// Too late.
    Timeout,
    /// With a fault: one line.
    Failed(String),
}

/// An engine. It is never given back to the system: one process makes one.
pub struct Engine(ManuallyDrop<Inner>);

struct Inner {
    compiler: Machine,
    blank: Image,
    /// Something was compiled since the compiler was last put back.
    compiled: bool,
    runner: Machine,
    base: Image,
    /// Nothing was loaded since the runner's base was kept.
    is_base: bool,
    keeps: Keeps,
    scripts: Vec<Script>,
    clean: Option<u64>,
    uses: u64,
    begin: Persistent<Function<'static>>,
    describe: Persistent<Function<'static>>,
    find: Program,
    watch: Rc<Watch>,
    console: Rc<RefCell<String>>,
}

struct Machine {
    arena: Arena,
    context: Context,
    /// Kept beside the context that lives in it.
    _runtime: Runtime,
}

struct Script {
    id: u64,
    program: Program,
    /// What each call begins from. Missing where no second call is expected.
    image: Option<Image>,
    used: u64,
}

/// What an engine keeps of a script for its next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// An image of it as it was loaded.
    Images,
    /// Nothing: whoever asks again loads it again. For a process that answers one event.
    Nothing,
}

/// The clock that the engine asks.
struct Watch {
    deadline: Cell<Instant>,
    fired: Cell<bool>,
}

impl Watch {
    fn look(&self) -> bool {
        if !self.fired.get() && Instant::now() >= self.deadline.get() {
            self.fired.set(true);
        }
        self.fired.get()
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Machine {
    fn new<I: Intrinsic>(size: usize) -> io::Result<Machine> {
        let arena = Arena::new(size)?;
        let runtime = Runtime::new_with_alloc(arena.heap()).map_err(io::Error::other)?;
        runtime.set_max_stack_size(STACK);
        // what is garbage after a call is gone with it; this is for long calls
        runtime.set_gc_threshold(4 << 20);
        let context = Context::custom::<I>(&runtime).map_err(io::Error::other)?;
        Ok(Machine { arena, context, _runtime: runtime })
    }
}

/// The machine that compiles, and what it has compiled for each engine.
struct Compiler {
    machine: Machine,
    blank: Image,
    prelude: Bytecode,
    find: Bytecode,
}

impl Compiler {
    fn new() -> io::Result<Compiler> {
        let machine = Machine::new::<Compiling>(4 * COMPILING)?;
        let blank = machine.arena.keep();
        let compiled = machine.context.with(|ctx| {
            let prelude = bytecode::compile(&ctx, "hookgate", include_str!("prelude.js"));
            let find =
                bytecode::compile(&ctx, "hookgate", "typeof handle === 'function' ? handle : undefined");
            match (prelude, find) {
                (Ok(prelude), Ok(find)) => Ok((prelude, find)),
                _ => Err(io::Error::other(thrown(&ctx))),
            }
        });
        let (prelude, find) = compiled?;
        Ok(Compiler { machine, blank, prelude, find })
    }
}

impl Engine {
    /// Makes an engine.
    ///
    /// # Errors
    /// There is no memory to reserve, or the engine does not start.
    pub fn new(keeps: Keeps) -> io::Result<Engine> {
        let Compiler { machine: compiler, blank, prelude, find } = Compiler::new()?;
        let runner = Machine::new::<Running>(4 * MOST_MEMORY)?;
        let watch = Rc::new(Watch { deadline: Cell::new(Instant::now()), fired: Cell::new(false) });
        let asked = watch.clone();
        runner._runtime.set_interrupt_handler(Some(Box::new(move || asked.look())));
        watch.deadline.set(Instant::now() + Duration::from_secs(60));
        let console = Rc::new(RefCell::new(String::with_capacity(CONSOLE)));
        let made = runner.context.with(|ctx| {
            let prelude = run(prelude.load(&ctx)?, &ctx)?;
            let prelude = prelude.into_function().ok_or(Error::Unknown)?;
            let kept = console.clone();
            let write = Function::new(ctx.clone(), move |line: String| write(&mut kept.borrow_mut(), &line))?;
            let made: Object<'_> = prelude.call((write,))?;
            let begin = Persistent::save(&ctx, made.get::<_, Function<'_>>("begin")?);
            let describe = Persistent::save(&ctx, made.get::<_, Function<'_>>("describe")?);
            Ok((begin, describe, find.load(&ctx)?))
        });
        let (begin, describe, find) = made.map_err(|error: Error| io::Error::other(error.to_string()))?;
        let base = runner.arena.keep();
        Ok(Engine(ManuallyDrop::new(Inner {
            compiler,
            blank,
            compiled: true,
            runner,
            base,
            is_base: true,
            keeps,
            scripts: Vec::new(),
            clean: None,
            uses: 0,
            begin,
            describe,
            find,
            watch,
            console,
        })))
    }

    /// Compiles a script without running it.
    ///
    /// # Errors
    /// What is wrong with it, with line and column.
    pub fn check(&mut self, source: &str) -> Result<(), String> {
        self.0.compile(source).map(|_| ())
    }

    /// Is this script loaded?
    pub fn knows(&self, id: u64) -> bool {
        let is_ready = self.0.clean == Some(id);
        self.0.scripts.iter().any(|script| script.id == id && (is_ready || script.image.is_some()))
    }

    /// Compiles and loads a script under a number of the caller's.
    ///
    /// # Errors
    /// What is wrong with it, with line and column.
    pub fn load(&mut self, id: u64, source: &str) -> Result<(), String> {
        self.0.load(id, source)
    }

    /// Makes the next call of this script ready.
    pub fn ready(&mut self, id: u64) {
        self.0.ready(id);
    }

    /// Asks a loaded script. Also tells what it wrote to its console.
    pub fn ask(&mut self, id: u64, question: &Question<'_>) -> (Outcome, String) {
        self.0.ask(id, question)
    }
}

impl Inner {
    fn compile(&mut self, source: &str) -> Result<bytecode::Bytecode, String> {
        if std::mem::replace(&mut self.compiled, true) {
            restore(&self.compiler.arena, &self.blank);
        }
        self.compiler.arena.allow(COMPILING);
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let compiled = self.compiler.context.with(|ctx| match bytecode::compile(&ctx, NAME, source) {
            Ok(bytecode) => Ok(bytecode),
            Err(Error::InvalidString(_)) => Err("a zero character in the script".into()),
            Err(_) => Err(thrown(&ctx)),
        });
        let refused = self.compiler.arena.refused();
        if refused { Err("the script is too large to be compiled".into()) } else { compiled }
    }

    fn load(&mut self, id: u64, source: &str) -> Result<(), String> {
        let bytecode = self.compile(source)?;
        if !std::mem::replace(&mut self.is_base, false) {
            restore(&self.runner.arena, &self.base);
        }
        self.clean = None;
        self.runner.arena.allow(COMPILING);
        let loaded = self.runner.context.with(|ctx| bytecode.load(&ctx));
        if let (Ok(program), false) = (loaded, self.runner.arena.refused()) {
            let image = (self.keeps == Keeps::Images).then(|| self.runner.arena.keep());
            match &image {
                Some(image) => self.make_room(image.size()),
                None => self.scripts.clear(),
            }
            self.scripts.push(Script { id, program, image, used: self.uses });
            self.clean = Some(id);
            return Ok(());
        }
        Err("the compiled script cannot be loaded".into())
    }

    /// Forgets the scripts that were not asked for the longest time.
    fn make_room(&mut self, more: usize) {
        let total = |scripts: &[Script]| {
            scripts.iter().flat_map(|script| &script.image).map(Image::size).sum::<usize>()
        };
        while !self.scripts.is_empty() && total(&self.scripts).saturating_add(more) > IMAGES {
            let oldest = self.scripts.iter().enumerate().min_by_key(|(_, script)| script.used);
            let Some((place, _)) = oldest else { return };
            self.scripts.swap_remove(place);
        }
    }

    fn ready(&mut self, id: u64) {
        if self.clean == Some(id) {
            return;
        }
        let script = self.scripts.iter().find(|script| script.id == id);
        if let Some(image) = script.and_then(|script| script.image.as_ref()) {
            restore(&self.runner.arena, image);
            self.clean = Some(id);
        }
    }

    fn ask(&mut self, id: u64, question: &Question<'_>) -> (Outcome, String) {
        self.ready(id);
        self.uses = self.uses.saturating_add(1);
        let (uses, is_ready) = (self.uses, self.clean == Some(id));
        let Some(script) = self.scripts.iter_mut().find(|script| script.id == id && is_ready) else {
            return (Outcome::Failed("the script is not loaded".into()), String::new());
        };
        script.used = uses;
        let program = script.program;
        self.clean = None;
        self.console.borrow_mut().clear();
        self.watch.deadline.set(question.deadline);
        self.watch.fired.set(false);
        let asked = self.runner.context.with(|ctx| {
            self.inside(&ctx, program, question).map_err(|error| {
                // whatever else it is, it is late or out of memory first
                let told =
                    self.watch.look() || self.runner.arena.refused() || !matches!(error, Error::Exception);
                if told { String::new() } else { self.describe(&ctx) }
            })
        });
        let outcome = if self.watch.look() {
            Outcome::Timeout
        } else if self.runner.arena.refused() {
            Outcome::Failed(format!("out of memory: more than {} MiB", question.memory >> 20))
        } else {
            match asked {
                Ok(outcome) => outcome,
                Err(text) if text.is_empty() => {
                    Outcome::Failed("the script failed in a way that cannot be told".into())
                }
                Err(text) => Outcome::Failed(text),
            }
        };
        (outcome, std::mem::take(&mut *self.console.borrow_mut()))
    }

    fn inside<'js>(
        &self,
        ctx: &Ctx<'js>,
        program: Program,
        question: &Question<'_>,
    ) -> Result<Outcome, Error> {
        let arena = self.runner.arena;
        // the event is the host's doing: the script's own limit begins after it
        arena.allow(question.event.len().saturating_mul(64).clamp(4 << 20, MOST_MEMORY / 2));
        let event = ctx.json_parse(question.event)?;
        let begin = self.begin.clone().restore(ctx)?;
        let (low, high) = (halves(question.seed), halves(question.seed >> 32));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 53 bits")]
        let event: Value<'js> = begin.call((event, question.now as f64, low, high))?;
        arena.allow(question.memory);
        run(program, ctx)?;
        let Some(handle) = run(self.find, ctx)?.into_function() else {
            return Ok(Outcome::Failed("the script has no function `handle`".into()));
        };
        let value: Value<'js> = handle.call((event,))?;
        let Some(json) = ctx.json_stringify(value)? else { return Ok(Outcome::Nothing) };
        let json = json.to_string()?;
        if json.len() > LARGEST_RESULT {
            let text = format!("the result has {} bytes; at most {LARGEST_RESULT} are allowed", json.len());
            return Ok(Outcome::Failed(text));
        }
        Ok(Outcome::Value(json))
    }

    /// What was thrown. Reading it may run the script's own code, under the same limits.
    fn describe(&self, ctx: &Ctx<'_>) -> String {
        let thrown = ctx.catch();
        let told = || -> Result<(String, String), Error> {
            let describe = self.describe.clone().restore(ctx)?;
            let told: Array<'_> = describe.call((thrown,))?;
            Ok((told.get(0)?, told.get(1)?))
        };
        match told() {
            Ok((text, stack)) => placed(&text, &stack),
            Err(_) => "the script threw something that cannot be told".into(),
        }
    }
}

/// Puts an arena back.
#[expect(unsafe_code, reason = "see the comment")]
fn restore(arena: &Arena, image: &Image) {
    // SAFETY: images are kept and restored outside of `Context::with`, so no value of the engine that is younger than
    // the image is held in Rust: what stays, the runtime, the context and the prelude's functions, is older than
    // every image.
    unsafe { arena.restore(image) };
}

/// Runs a program that was loaded into the runner.
#[expect(unsafe_code, reason = "see the comment")]
fn run<'js>(program: Program, ctx: &Ctx<'js>) -> Result<Value<'js>, Error> {
    // SAFETY: `Inner` hands out only programs of the image that the arena was last put back to, and runs each once
    // between two restores.
    unsafe { program.run(ctx) }
}

fn halves(seed: u64) -> i32 {
    let [a, b, c, d, ..] = seed.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Keeps a line of the console, as far as there is room. Tells what room is left.
fn write(console: &mut String, line: &str) -> i32 {
    let mut room = CONSOLE.saturating_sub(console.len());
    let before = console.len();
    for character in line.chars() {
        if character.len_utf8() > room {
            room = 0;
            break;
        }
        console.push(character);
        room = room.saturating_sub(character.len_utf8());
    }
    if room > 0 {
        console.push('\n');
        room -= 1;
    }
    let written = console.len().saturating_sub(before);
    debug_assert!(written <= CONSOLE);
    i32::try_from(room).unwrap_or(0)
}

/// What the compiler said. No script has run, so reading it is harmless.
fn thrown(ctx: &Ctx<'_>) -> String {
    let thrown = ctx.catch();
    let member = |name: &str| -> String {
        thrown.as_object().and_then(|error| error.get::<_, String>(name).catch(ctx).ok()).unwrap_or_default()
    };
    let text = format!("{}: {}", member("name"), member("message"));
    placed(&text, &member("stack"))
}

/// A fault's text with the place where it happened, cut to what is kept.
fn placed(text: &str, stack: &str) -> String {
    let place =
        place_in(stack).map(|(line, column)| format!(" (line {line}, column {column})")).unwrap_or_default();
    let room = LONGEST_ERROR.saturating_sub(place.len());
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(room).collect();
    format!("{line}{place}")
}

/// The first place in the script that a stack names.
fn place_in(stack: &str) -> Option<(u32, u32)> {
    stack.match_indices(NAME).find_map(|(at, _)| {
        let rest = stack.get(at..)?.strip_prefix(NAME)?.strip_prefix(':')?;
        let (line, rest) = rest.split_once(':')?;
        let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((line.parse().ok()?, column.parse().ok()?))
    })
}
