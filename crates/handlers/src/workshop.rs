//! Which handlers a door can run: one line a kind. The workshop turns a written handler into one that runs.

use crate::folder::Loaded;
use hookgate_core::define::{HookRef, Problem};
use hookgate_core::handler::{Handler, HandlerSpec, HandlerType};
use hookgate_core::hook::{Hook, Listens, Work};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Makes a handler of one kind. `folder` is where the hook file lies; relative names in it are meant from there.
/// The error is one sentence that names the field.
pub type Make = dyn Fn(&HandlerSpec, &Path) -> Result<Arc<dyn Handler>, String> + Send + Sync;

/// The kinds of handler that can run here.
#[derive(Clone, Default)]
pub struct Workshop {
    makers: HashMap<HandlerType, Arc<Make>>,
}

impl Workshop {
    /// A workshop in which no handler can run.
    pub fn empty() -> Workshop {
        Workshop::default()
    }

    /// The same with one more kind.
    #[must_use]
    pub fn with(
        mut self,
        kind: HandlerType,
        make: impl Fn(&HandlerSpec, &Path) -> Result<Arc<dyn Handler>, String> + Send + Sync + 'static,
    ) -> Workshop {
        self.makers.insert(kind, Arc::new(make));
        self
    }

    /// Gives every lifecycle hook its handler. A hook whose handler cannot run here becomes a problem.
    #[must_use]
    pub fn equip(&self, mut loaded: Loaded) -> Loaded {
        let mut kept = Vec::with_capacity(loaded.hooks.len());
        for mut hook in loaded.hooks.drain(..) {
            let unfiltered = is_unfiltered(&hook);
            let made = match &mut hook.work {
                Work::Handler { spec, .. } if spec.written_type() == Some(HandlerType::Prompt) && unfiltered => Err(
                    "a prompt hook needs a `matcher` or an `if_expr`: each question is slow and costs money"
                        .into(),
                ),
                Work::Handler { spec, run } if run.is_none() => {
                    let folder = Path::new(&hook.file).parent().unwrap_or(Path::new("."));
                    self.make(spec, folder).map(|handler| *run = Some(handler))
                }
                _ => Ok(()),
            };
            match made {
                Ok(()) => kept.push(hook),
                Err(why) => loaded.problems.push(Problem {
                    hook: Some(HookRef { index: hook.index, label: Some(hook.name.to_string()) }),
                    field: Some("handler".into()),
                    ..Problem::of_file(&hook.file, why)
                }),
            }
        }
        loaded.hooks = kept;
        loaded
    }

    /// Makes one handler.
    ///
    /// # Errors
    /// No such handler can run here, or not this one; one sentence.
    pub fn make(&self, spec: &HandlerSpec, folder: &Path) -> Result<Arc<dyn Handler>, String> {
        match spec.written_type().and_then(|kind| self.makers.get(&kind)) {
            Some(make) => make(spec, folder),
            None => Err(format!("handlers of type `{}` cannot run here", spec.type_name())),
        }
    }
}

/// Whether a hook listens to every event of its point.
fn is_unfiltered(hook: &Hook) -> bool {
    match &hook.listens {
        Listens::Point { filter, .. } => filter.is_open(),
        _ => false,
    }
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.makers.keys()).finish()
    }
}
