//! Handlers that are made when they are first asked. A process that answers one event must not start script workers or
//! read scripts for hooks that this event does not concern.

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerSpec, HandlerType};
use hookgate_handlers::workshop::{Make, Workshop};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A workshop whose handlers are made by the other one, later.
pub(crate) fn lazily(workshop: &Workshop) -> Workshop {
    [HandlerType::Script, HandlerType::Command, HandlerType::Http, HandlerType::Prompt].into_iter().fold(
        Workshop::empty(),
        |lazy, kind| {
            let workshop = workshop.clone();
            lazy.with(kind, move |spec, folder| {
                let workshop = workshop.clone();
                let make: Arc<Make> = Arc::new(move |spec, folder| workshop.make(spec, folder));
                Ok(Arc::new(Lazy {
                    spec: spec.clone(),
                    folder: folder.to_owned(),
                    make,
                    made: OnceLock::new(),
                }))
            })
        },
    )
}

struct Lazy {
    spec: HandlerSpec,
    folder: PathBuf,
    make: Arc<Make>,
    made: OnceLock<Result<Arc<dyn Handler>, String>>,
}

impl Handler for Lazy {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        match self.made.get_or_init(|| (self.make)(&self.spec, Path::new(&self.folder))) {
            Ok(handler) => handler.ask(call),
            // what `check` shows as a problem of the hook
            Err(why) => {
                Box::pin(std::future::ready(Err(Fault::failed("its handler cannot be made", why.clone()))))
            }
        }
    }
}

impl std::fmt::Debug for Lazy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lazy").field("spec", &self.spec).finish_non_exhaustive()
    }
}
