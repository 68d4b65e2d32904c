//! The resolver of a case; nobody else is asked.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hookgate_handlers::address::Lookup;
use serde_json::Value;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Names with what each question about them is answered; the last answer repeats.
#[derive(Debug)]
pub(super) struct Names(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>);

impl Names {
    /// `resolver` has the addresses of each name; `resolver_sequence` has one entry for each question, an address or
    /// a list of them.
    pub(super) fn new(config: &Value) -> Names {
        let named = |key: &str| config.get(key).and_then(Value::as_object).into_iter().flatten();
        let always = named("resolver").map(|(name, value)| (name.clone(), vec![addresses(value)]));
        let in_turn = named("resolver_sequence").map(|(name, value)| {
            let answers = value.as_array().into_iter().flatten().map(addresses);
            (name.clone(), answers.collect())
        });
        Names(Mutex::new(always.chain(in_turn).collect()))
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match names.get_mut(name) {
            Some(answers) if answers.len() > 1 => Some(answers.remove(0)),
            Some(answers) => answers.first().cloned(),
            None => None,
        };
        async move { found.ok_or_else(|| std::io::Error::other("no such name in this case")) }.boxed()
    }
}

fn addresses(value: &Value) -> Vec<IpAddr> {
    let one = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    match value.as_array() {
        Some(list) => list.iter().filter_map(one).collect(),
        None => one(value).into_iter().collect(),
    }
}
