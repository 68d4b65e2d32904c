//! What a language model is to the rest of the program.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_core::future::BoxFuture;

use crate::{Delta, Error, Request};

/// The pieces of one answer. Ends after the last piece or after the first error. Dropping it gives the answer up; a
/// model behind a network stops being asked.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, Error>> + Send>>;

/// Something that answers requests. Implement it to bring a model of your own.
///
/// An implementation sends [`Delta::Finish`] exactly once in every answer that ends well; an answer that stops
/// without one ends in [`Error::Cut`]. It repeats nothing once a first piece is out.
pub trait Model: Send + Sync {
    /// A short name for logs and messages.
    fn name(&self) -> &str;

    /// Asks, and gives the stream of the answer as soon as there is one.
    ///
    /// # Errors
    /// Everything that goes wrong before the answer begins. What goes wrong later is an item of the stream.
    fn stream(&self, request: Request) -> BoxFuture<'_, Result<DeltaStream, Error>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<DeltaStream, Error>> {
        (**self).stream(request)
    }
}
