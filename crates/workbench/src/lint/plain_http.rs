//! Events that travel in the clear: an endpoint over plain http that is not on this machine.

use super::rule::{Notes, Rule};
use hookgate_core::handler::{HandlerKind, HttpUrl};
use hookgate_core::hook::{Hook, Work};
use std::net::IpAddr;

pub(super) const RULE: Rule =
    Rule { id: "plain-http", about: "an endpoint beyond this machine without TLS", look: Some(look) };

fn look(hooks: &[&Hook], notes: &mut Notes<'_>) {
    for hook in hooks {
        if let Work::Handler { spec, .. } = &hook.work
            && let HandlerKind::Http { url: HttpUrl::Written(url), .. } = &spec.kind
            && let Some(host) = plain_host(url)
            && !is_here(host)
        {
            let message =
                format!("events go to `{host}` in the clear, and anybody on the way may answer for it");
            notes.add(hook, "handler.url", message, "use `https:`");
        }
    }
}

/// The host of an address with the scheme http.
fn plain_host(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    if let Some(v6) = authority.strip_prefix('[') {
        return v6.split(']').next();
    }
    authority.split(':').next()
}

fn is_here(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::check;
    use super::RULE;

    #[test]
    fn endpoints_without_tls() {
        let url = |url: &str, want: &[&str]| {
            let text = format!(
                r#"{{"event":"stop","handler":{{"type":"http","url":"{url}","allow_private":true}}}}"#
            );
            check(RULE.id, &text, want);
        };
        url("http://hooks.example.com/x", &["handler.url: events go to `hooks.example.com` in the clear"]);
        url("HTTP://10.0.0.7:8080", &["`10.0.0.7`"]);
        url("http://localhost.example.com", &["`localhost.example.com`"]);
        for fine in
            ["https://hooks.example.com", "http://127.0.0.1:9/x", "http://[::1]:9", "http://localhost/x"]
        {
            url(fine, &[]);
        }
    }
}
