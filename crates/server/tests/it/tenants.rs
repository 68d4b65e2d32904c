//! One tenant's hooks, conversations, counters and limits never touch another's.

use crate::kit::bench::{Hooks, lifecycle};
use crate::kit::wires::says;
use crate::kit::{Client, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::{Identify, Who, hash_of};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

fn user(user: Value) -> Hooks {
    Hooks { user, ..Hooks::default() }
}

fn by_key() -> Identify {
    let who = |tenant| Who { tenant, agent: None };
    Identify::ByKey(HashMap::from([(hash_of("ka"), who(0)), (hash_of("kb"), who(1))]))
}

fn by_header() -> Identify {
    Identify::ByHeader { tenant: "x-tenant".into(), agent: Some("x-agent".into()) }
}

const LOGS: &str = r#"[{"target": "stream", "chunks": ["finish"], "maxTriggers": 2, "actions": [{"type": "log", "message": "end"}]}]"#;

#[test]
fn hooks_sessions_and_counters_are_the_tenants_own() {
    run(async {
        for wire in WIRES {
            for (identify, keys) in [(by_key(), true), (by_header(), false)] {
                let upstream =
                    Upstream::playing(vec![Reply::stream(&wire.stream(&says(&["BADWORD"])))]).await;
                let mut of_a: Value = serde_json::from_str(LOGS).unwrap();
                of_a.as_array_mut().unwrap().push(json!({"target": "stream", "regex": "BADWORD", "actions": [{"type": "queue-message", "role": "user", "message": "of a"}]}));
                let tenants = vec![("a", user(of_a), 9), ("b", user(serde_json::from_str(LOGS).unwrap()), 9)];
                let bench = Setup::default()
                    .with(|setup| (setup.tenants, setup.identify) = (tenants, identify))
                    .start(&upstream)
                    .await;
                let mut client = Client::new(bench.address);
                let request = wire.request(true, "hi");
                for _ in 0..4 {
                    for name in ["a", "b"] {
                        let key = format!("k{name}");
                        let who = match (keys, wire) {
                            (false, _) => ("x-tenant", name),
                            (true, Wire::Messages) => ("x-api-key", key.as_str()),
                            (true, Wire::Gemini) => ("x-goog-api-key", key.as_str()),
                            (true, _) => ("authorization", &*format!("Bearer {key}").leak()),
                        };
                        // the same name of a session for both
                        let got =
                            client.post(wire.path(true), &[who, ("x-hookgate-session", "s")], &request).await;
                        assert_eq!(got.status, 200, "{}", got.text());
                        if name == "b" {
                            let sent = upstream.last();
                            assert!(!String::from_utf8_lossy(&sent.body).contains("of a"), "{wire:?}");
                            assert_eq!(sent.header("x-tenant"), None);
                            assert_eq!(sent.header("x-hookgate-session"), None);
                        }
                    }
                }
                let told = bench.told("log");
                let of = |tenant: &str| {
                    told.iter().filter(|line| line.starts_with(&format!("log {tenant} "))).count()
                };
                assert_eq!((of("a"), of("b")), (2, 2), "two firings each: {told:?}");
                assert_eq!(bench.gateway.sessions(), 2);
            }
        }
    });
}

#[test]
fn who_is_unknown_is_told_in_the_wires_shape() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::json(&wire.body(&says(&["x"])))]).await;
            let check = async |identify: Identify, headers: &[(&str, &str)], status: u16| {
                let tenants = vec![("a", Hooks::default(), 9), ("b", Hooks::default(), 9)];
                let bench = Setup::default()
                    .with(|setup| (setup.tenants, setup.identify) = (tenants, identify))
                    .start(&upstream)
                    .await;
                for path in [wire.path(false), "/v1/models"] {
                    let got =
                        Client::new(bench.address).post(path, headers, &wire.request(false, "hi")).await;
                    assert_eq!(got.status, status, "{headers:?} {path}");
                    if status != 200 {
                        assert!(got.json()["error"]["message"].is_string(), "{}", got.text());
                    }
                }
            };
            check(by_key(), &[], 401).await;
            check(by_key(), &[("authorization", "Bearer kc")], 401).await;
            check(by_key(), &[("authorization", "Bearer kc"), ("x-api-key", "ka")], 401).await;
            check(by_key(), &[("authorization", "bearer ka")], 200).await;
            check(by_header(), &[], 403).await;
            check(by_header(), &[("x-tenant", "c")], 403).await;
            check(by_header(), &[("x-tenant", "a"), ("x-tenant", "b")], 403).await;
            check(by_header(), &[("X-Tenant", "b")], 200).await;
        }
        // a key in the query, as one provider takes it
        let upstream = Upstream::playing(vec![Reply::json(&Wire::Gemini.body(&says(&["x"])))]).await;
        let tenants = vec![("a", Hooks::default(), 9), ("b", Hooks::default(), 9)];
        let own = Setup::default().with(|setup| {
            (setup.tenants, setup.identify, setup.key) = (tenants, by_key(), Some("provider-key"))
        });
        let bench = own.start(&upstream).await;
        let got = Client::new(bench.address)
            .post("/v1beta/models/m:generateContent?key=ka&alt=json", &[], &Wire::Gemini.request(false, "hi"))
            .await;
        assert_eq!(got.status, 200);
        let sent = upstream.last();
        assert_eq!(sent.path(), "/v1beta/models/m:generateContent?alt=json", "the client's key stays here");
        assert_eq!(sent.header("x-goog-api-key"), Some("provider-key"));
        assert_eq!(sent.header("authorization"), None);
        Client::new(bench.address)
            .post("/v1beta/models/m:generateContent?key=ka", &[], &Wire::Gemini.request(false, "hi"))
            .await;
        assert_eq!(upstream.last().path(), "/v1beta/models/m:generateContent");
    });
}

#[test]
fn the_gateways_key_replaces_the_clients() {
    run(async {
        let upstream = Upstream::playing(vec![Reply::json(&Wire::Chat.body(&says(&["x"])))]).await;
        let bench = Setup::default().with(|setup| setup.key = Some("provider-key")).start(&upstream).await;
        for (sent, want) in [
            ("authorization", "Bearer provider-key"),
            ("x-api-key", "provider-key"),
            ("x-goog-api-key", "provider-key"),
        ] {
            Client::new(bench.address)
                .post("/v1/chat/completions", &[(sent, "client-key")], &Wire::Chat.request(false, "hi"))
                .await;
            let last = upstream.last();
            assert_eq!(last.header(sent), Some(want));
            assert!(!last.head.contains("client-key"));
        }
        Client::new(bench.address).post("/v1/chat/completions", &[], &Wire::Chat.request(false, "hi")).await;
        assert_eq!(upstream.last().header("authorization"), Some("Bearer provider-key"));
        // this provider takes no API key as a bearer token
        let bearer = [("authorization", "Bearer client-key")];
        Client::new(bench.address).post("/v1/messages", &bearer, &Wire::Messages.request(false, "hi")).await;
        assert_eq!(upstream.last().header("x-api-key"), Some("provider-key"));
        assert_eq!(upstream.last().header("authorization"), None);
    });
}

#[test]
fn a_tenant_runs_so_many_requests_at_a_time() {
    run(async {
        let reply = Reply::stream(&Wire::Chat.stream(&says(&["x"])))
            .with(|reply| reply.pause = Duration::from_millis(150));
        let upstream = Upstream::playing(vec![reply]).await;
        let tenants =
            vec![("a", user(json!([lifecycle("s", "stop", json!({}))])), 2), ("b", Hooks::default(), 2)];
        let bench = Setup::default()
            .with(|setup| (setup.tenants, setup.identify) = (tenants, by_header()))
            .start(&upstream)
            .await;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut client = Client::new(bench.address);
            client
                .send(&crate::kit::client::post(
                    "/v1/chat/completions",
                    &[("x-tenant", "a")],
                    Wire::Chat.request(true, "hi").to_string().as_bytes(),
                ))
                .await;
            client.read_some(1).await;
            held.push(client);
        }
        let ask = async |tenant: &str| {
            Client::new(bench.address)
                .post("/v1/chat/completions", &[("x-tenant", tenant)], &Wire::Chat.request(true, "hi"))
                .await
        };
        let got = ask("a").await;
        assert_eq!(got.status, 429);
        assert_eq!(got.json()["error"]["type"], "rate_limit_error");
        assert_eq!(ask("b").await.status, 200, "another tenant has places of its own");
        // a client that goes away frees its place
        held.clear();
        for _ in 0..100 {
            if ask("a").await.status == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the place is never free");
    });
}
