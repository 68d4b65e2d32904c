//! Whole-crate tests: recorded traffic through the decoders, encoded requests, the client over loopback.
#![cfg(test)]

mod any_input;
mod captures;
mod encode;
mod finish;
mod http;
mod proxy_captures;
