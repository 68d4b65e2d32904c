//! What all tests use.

pub(crate) mod bench;
pub(crate) mod client;
pub(crate) mod handler;
pub(crate) mod upstream;
pub(crate) mod wires;

pub(crate) use bench::{Bench, Setup};
pub(crate) use client::Client;
pub(crate) use upstream::{Close, Reply, Upstream};
pub(crate) use wires::{Answer, Call, WIRES, Wire};

/// A runtime of its own, as a program has.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(std::time::Duration::from_secs(580), test).await.expect("the test hangs");
    });
    runtime.shutdown_background();
}
