//! Endpoints that fail.

use super::matrix::{ALL, At, DECIDING, Ends, GATES, Rig, Row, check, only, row};
use super::server::{Does, closed, json, reply, serve, serve_tls};
use crate::bench::{Bench, reason};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::HandlerType;
use hookgate_handlers::address::Lookup;
use hookgate_handlers::http::{self, Network, check_url};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json as value};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const EXPIRED: &[u8] = include_bytes!("../../data/expired.pem");
const SELF_SIGNED: &[u8] = include_bytes!("../../data/self-signed.pem");

const SSH: &[u8] = b"SSH-2.0-OpenSSH\r\n";

/// How very many zeros begin that gzip made small. Nothing here unpacks them.
const BOMB: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x01\x0d\x00\x00\x00\xc2\xa0\xf7Om\x0f\x07\x14";

/// The addresses of every name, one set after the other; the last stays.
#[derive(Debug)]
struct Names {
    sets: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names {
    fn new(sets: &[&[&str]]) -> Arc<Names> {
        let sets = sets.iter().map(|set| set.iter().map(|text| text.parse().unwrap()).collect());
        Arc::new(Names { sets: sets.collect(), asked: AtomicUsize::new(0) })
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let found = match name {
            "nowhere.test" => Err(std::io::Error::other("no such name")),
            _ => {
                let number = self.asked.fetch_add(1, Ordering::SeqCst);
                Ok(self.sets[number.min(self.sets.len() - 1)].clone())
            }
        };
        Box::pin(std::future::ready(found))
    }
}

fn at_loopback() -> Arc<Names> {
    Names::new(&[&["127.0.0.1"]])
}

async fn rig(network: Network) -> Rig {
    let healthy = hook(&url(serve(json(r#"{"decision":"allow"}"#)).await));
    Rig { workshop: workshop(network), healthy, lay_out: |_| {} }
}

fn workshop(network: Network) -> Workshop {
    Workshop::empty().with(HandlerType::Http, http::maker(network))
}

fn hook(url: &str) -> Value {
    value!({"type": "http", "url": url, "allow_private": true})
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/check")
}

async fn faulty(fault: &'static str, does: Does, ends: Ends) -> Row {
    row(fault, hook(&url(serve(does).await)), ends)
}

#[tokio::test]
async fn endpoints_that_do_not_end() {
    let endless_head = || Does::Floods(b"HTTP/1.1 200 OK\r\n".into(), b"x: y\r\n".into());
    let allow = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"decision\":\"allow\"}";
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{";
    let rows = vec![
        faulty("silence", Does::Stalls(Vec::new()), Ends::Late).await,
        faulty("a byte now and then", Does::Drips(allow.into()), Ends::Late).await,
        faulty("silence after the head", Does::Stalls(head.into()), Ends::Late).await,
        only(
            GATES,
            faulty("a head without end", endless_head(), Ends::Fails("it gave no HTTP reply", "too large"))
                .await,
        ),
    ];
    check(&rig(Network::new().unwrap()).await, rows).await;
}

#[tokio::test]
async fn endpoints_that_are_not_there() {
    let refused = Ends::Fails("the connection was refused", "connection refused");
    let rows = vec![
        only(DECIDING, row("a closed port", hook(&url(closed().await)), refused)),
        only(&[At::Watched], row("a closed port", hook(&url(closed().await)), refused)),
        only(
            GATES,
            row(
                "no such name",
                hook("http://nowhere.test/"),
                Ends::Fails("no connection could be made", "no such name"),
            ),
        ),
    ];
    check(&rig(Network::with_lookup(at_loopback()).unwrap()).await, rows).await;
}

#[tokio::test]
async fn connections_that_break() {
    let broke = Ends::Fails("its reply broke off", "its reply broke off");
    let half = || b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{\"decision\":\"allow\"}".to_vec();
    let gone = Ends::Fails("it gave no HTTP reply", "");
    let reset = Ends::Fails("the connection broke off", "reset");
    let rows = vec![
        faulty("hangs up", Does::Says(Vec::new()), gone).await,
        faulty("resets", Does::Resets(Vec::new()), reset).await,
        faulty("another protocol", Does::Greets(SSH.into()), gone).await,
        faulty("half a head", Does::Says(b"HTTP/1.1 200 OK\r\ncont".into()), gone).await,
        faulty("half a body", Does::Says(half()), broke).await,
        faulty("a reset in the body", Does::Resets(half()), broke).await,
    ];
    // whoever is only told something has done it when the status is there
    let rows = rows.into_iter().map(|row| only(DECIDING, row)).collect();
    check(&rig(Network::new().unwrap()).await, rows).await;
}

#[tokio::test]
async fn endpoints_that_lie() {
    let no_verdict = |words| Ends::Fails("its reply is no verdict", words);
    let page = "<html>Please sign in to allow</html>";
    let web = Ends::Fails("it answered with a web page", "web page");
    let empty = Ends::Fails("its reply is empty", "nothing is no verdict");
    let unknown = Ends::Fails("its answer is no decision", "`perhaps` is no decision");
    let deep = "{\"a\":".repeat(13_000);
    let rows = vec![
        faulty("a web page", reply("200 OK", "content-type: text/html\r\n", page), web).await,
        faulty("a web page in disguise", json(page), no_verdict("no JSON object")).await,
        faulty("prose", json("this looks fine, allow"), no_verdict("no JSON object")).await,
        faulty("a list", json("[\"allow\"]"), no_verdict("no JSON object")).await,
        faulty("two verdicts", json(r#"{"decision":"allow"}{}"#), no_verdict("trailing characters")).await,
        faulty("a decision that is no text", json(r#"{"decision":1}"#), no_verdict("no text")).await,
        faulty("a key twice", json(r#"{"reason":"a","reason":"b"}"#), no_verdict("written twice")).await,
        faulty("no UTF-8", json(b"\xff\xfe{\"decision\":\"allow\"}"), no_verdict("no JSON object")).await,
        faulty("objects in each other", json(deep), no_verdict("recursion limit")).await,
        faulty("unknown", json(r#"{"decision":"perhaps"}"#), unknown).await,
        only(GATES, faulty("nothing", json(""), empty).await),
        only(GATES, faulty("no content", reply("204 No Content", "", ""), empty).await),
        only(
            GATES,
            faulty("no decision", json("{}"), Ends::Fails("its answer has no decision", "no decision")).await,
        ),
    ];
    let rows = rows.into_iter().map(|row| if row.at == ALL { only(DECIDING, row) } else { row }).collect();
    check(&rig(Network::new().unwrap()).await, rows).await;
}

#[tokio::test]
async fn statuses_that_are_no_success() {
    let allow = r#"{"decision":"allow"}"#;
    let status = |why, words| Ends::Fails(why, words);
    let moved = Ends::Fails("redirects are not followed", "redirects are not followed");
    let to = |place: &str| reply("307 Temporary Redirect", &format!("location: {place}\r\n"), allow);
    let other = url(serve(json(allow)).await);
    let rows = vec![
        faulty("unauthorized", reply("401 U", "", allow), status("it answered with status 401", "401")).await,
        faulty("an error", reply("500 E", "", allow), status("it answered with status 500", "500")).await,
        faulty("a long wait", reply("429 W", "retry-after: 600\r\n", ""), status("status 429", "429")).await,
        faulty("to the metadata service", to("http://169.254.169.254/latest/meta-data/"), moved).await,
        faulty("to another server", to(&other), moved).await,
    ];
    check(&rig(Network::new().unwrap()).await, rows).await;
}

#[tokio::test]
async fn endpoints_that_flood() {
    let long = Ends::Fails("its reply is too long", "longer than 64 KiB");
    let packed = Ends::Fails("its reply is compressed", "compressed (gzip)");
    let zeros = |head: &[u8]| Does::Floods(head.to_vec(), vec![b'0'; 65_536]);
    let gzip = "content-encoding: gzip\r\n";
    let million = "[".repeat(1_000_000);
    let rows = vec![
        faulty("a body without end", zeros(b"HTTP/1.1 200 OK\r\n\r\n"), long).await,
        faulty("a line without end", zeros(b"HTTP/1.1 200 OK\r\nx: "), Ends::Fails("no HTTP reply", ""))
            .await,
        faulty("a million lists in each other", json(million), long).await,
        faulty("a gzip bomb", reply("200 OK", gzip, BOMB), packed).await,
        faulty("a gzip bomb unannounced", json(BOMB), Ends::Fails("is no verdict", "no JSON object")).await,
    ];
    let rows = rows.into_iter().map(|row| only(DECIDING, row)).collect();
    check(&rig(Network::new().unwrap()).await, rows).await;
}

#[tokio::test]
async fn certificates_that_are_no_good() {
    let allow = || json(r#"{"decision":"allow"}"#);
    let of = |port: u16| hook(&format!("https://hooks.test:{port}/"));
    let expired = Ends::Fails("its certificate has expired", "certificate expired");
    let unknown = Ends::Fails("its certificate is not accepted", "UnknownIssuer");
    let pem = std::str::from_utf8(EXPIRED).unwrap();
    let rows = vec![
        row("expired", of(serve_tls(EXPIRED, allow()).await), expired),
        row(
            "no TLS at all",
            of(serve(Does::Greets(SSH.into())).await),
            Ends::Fails("TLS failed", "TLS failed"),
        ),
    ];
    check(&rig(Network::trusting(at_loopback(), pem).unwrap()).await, rows).await;
    let rows = vec![row("signed by itself", of(serve_tls(SELF_SIGNED, allow()).await), unknown)];
    check(&rig(Network::trusting(at_loopback(), "").unwrap()).await, rows).await;
}

/// The check looks at one answer of the resolver, the connection would use the next.
#[tokio::test]
async fn names_that_change_their_mind() {
    let port = serve(json(r#"{"decision":"allow"}"#)).await;
    let target = format!("http://hooks.test:{port}/");
    let (public, loopback, metadata) = ("93.184.215.14", "127.0.0.1", "169.254.169.254");
    for (private, sets, says) in [
        // checked as a public address; at the connection it is this machine, or the metadata service
        (false, [&[public][..], &[loopback]], "its address is not allowed"),
        (false, [&[public][..], &[metadata]], "its address is not allowed"),
        (true, [&[loopback][..], &[metadata]], "its address is not allowed"),
    ] {
        let names = Names::new(&sets);
        check_url(&target, private, &*names).await.unwrap();
        let bench = gate(&target, private, names);
        assert!(reason(&bench.ls().await).contains(says), "{sets:?}: {:?}", bench.last());
        bench.recorded("error", "which is not allowed");
    }
    // one answer is asked for, and the connection goes where that was checked to lead
    let names = Names::new(&[&[loopback], &[metadata]]);
    let bench = gate(&target, true, names.clone());
    assert_eq!(reason(&bench.ls().await), "(allowed)");
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
}

fn gate(target: &str, private: bool, names: Arc<Names>) -> Bench {
    let hook = value!({"id": "f", "event": "pre_tool_use", "timeout_ms": 2000,
        "handler": {"type": "http", "url": target, "allow_private": private}});
    Bench::new(tempfile::tempdir().unwrap(), &workshop(Network::with_lookup(names).unwrap()), &hook)
}
