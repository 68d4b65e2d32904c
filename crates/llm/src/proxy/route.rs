//! Whose request it is, by its method and path.

use super::{ANTHROPIC, GEMINI, Middle, OPENAI_CHAT, OPENAI_RESPONSES};

/// What a route can do.
#[derive(Clone, Copy, Debug)]
pub enum Route {
    /// It asks a model for text: a wire that is understood.
    Judged(&'static dyn Middle),
    /// It produces no text of a model (models, embeddings, counting tokens, …). The wire is the one whose errors fit.
    Harmless(&'static dyn Middle),
    /// It may produce text and is not understood. The wire is the one whose errors fit.
    Unknown(&'static dyn Middle),
}

/// Ends of paths that ask for text, with their wires. `:name` is a method of something, behind a colon.
const JUDGED: &[(&str, &dyn Middle)] = &[
    ("/chat/completions", &OPENAI_CHAT),
    ("/responses", &OPENAI_RESPONSES),
    ("/messages", &ANTHROPIC),
    (":generatecontent", &GEMINI),
    (":streamgeneratecontent", &GEMINI),
];

/// Ends of paths that ask for something else than text, by POST.
const HARMLESS_POSTS: &[(&str, &dyn Middle)] = &[
    ("/embeddings", &OPENAI_CHAT),
    ("/moderations", &OPENAI_CHAT),
    ("/responses/input_tokens", &OPENAI_RESPONSES),
    ("/messages/count_tokens", &ANTHROPIC),
    (":counttokens", &GEMINI),
    (":embedcontent", &GEMINI),
    (":batchembedcontents", &GEMINI),
    ("/rerank", &OPENAI_CHAT),
    ("/reranking", &OPENAI_CHAT),
    ("/score", &OPENAI_CHAT),
    ("/tokenize", &OPENAI_CHAT),
    ("/detokenize", &OPENAI_CHAT),
    ("/apply-template", &OPENAI_CHAT),
    ("/api/embed", &OPENAI_CHAT),
    ("/api/show", &OPENAI_CHAT),
];

/// Ends of paths that only look at something.
const HARMLESS_GETS: &[&str] = &[
    "/models",
    "/health",
    "/healthz",
    "/ping",
    "/version",
    "/props",
    "/metrics",
    "/api/version",
    "/api/tags",
    "/api/ps",
    "/get_model_info",
    "/get_server_info",
];

/// Whose request it is. Paths are matched by their end, so that a prefix may stand before them, and as generously as
/// any server may read them: percent signs decoded once, slashes that are double or at the end left out, dots
/// resolved, upper and lower case alike. The query is not looked at.
pub fn route(method: &str, path: &str) -> Route {
    let path = normal(path);
    let wire = || wire_of(&path);
    let ends = |end: &&str| path.ends_with(*end);
    match method {
        "OPTIONS" => Route::Harmless(wire()),
        "POST" => {
            if let Some((_, wire)) = JUDGED.iter().find(|(end, _)| ends(end)) {
                Route::Judged(*wire)
            } else if let Some((_, wire)) = HARMLESS_POSTS.iter().find(|(end, _)| ends(end)) {
                Route::Harmless(*wire)
            } else {
                Route::Unknown(wire())
            }
        }
        "GET" | "HEAD" if path.is_empty() || is_model(&path) || HARMLESS_GETS.iter().any(ends) => {
            Route::Harmless(wire())
        }
        _ => Route::Unknown(wire()),
    }
}

/// `/models/ID`, where an id may have a slash or two in it.
fn is_model(path: &str) -> bool {
    let id = path.rsplit_once("/models/").map(|(_, id)| id);
    id.is_some_and(|id| !id.contains(':') && id.split('/').count() <= 3 && !id.contains("/operations"))
}

/// The wire whose errors fit best.
fn wire_of(path: &str) -> &'static dyn Middle {
    let has = |part: &str| path.contains(part);
    if has("/messages") || path.ends_with("/complete") {
        &ANTHROPIC
    } else if has("/v1beta") || has("/v1alpha") || has("content") || has(":") && has("/models/") {
        &GEMINI
    } else if has("/responses") {
        &OPENAI_RESPONSES
    } else {
        &OPENAI_CHAT
    }
}

/// The path as all servers would agree to write it.
fn normal(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let decoded = decode(path);
    let is_normal = |path: &str| path.starts_with('/') && !path.ends_with('/') && !path.contains('\\');
    if is_normal(&decoded) && !decoded.as_bytes().windows(2).any(|two| matches!(two, b"//" | b"/.")) {
        return decoded;
    }
    let mut segments: Vec<&str> = Vec::new();
    // Some servers take a backslash for a slash.
    for segment in decoded.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    segments.iter().flat_map(|segment| ["/", segment]).collect()
}

/// Percent signs decoded once, in lower case. What is not UTF-8 then is replaced.
fn decode(path: &str) -> String {
    if !path.contains('%') {
        return path.to_ascii_lowercase();
    }
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *byte == b'%').and_then(hex);
        let (byte, left) = match escaped {
            Some(byte) => (byte, after.get(2..).unwrap_or_default()),
            None => (*byte, after),
        };
        out.push(byte.to_ascii_lowercase());
        rest = left;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, expected: &str) {
        let got = match route(method, path) {
            Route::Judged(wire) => format!("judged {}", wire.name()),
            Route::Harmless(_) => "harmless".to_owned(),
            Route::Unknown(wire) => format!("unknown {}", wire.name()),
        };
        assert_eq!(got, expected, "{method} {path}");
    }

    #[test]
    fn routes_that_are_understood_are_judged() {
        for path in [
            "/v1/chat/completions",
            "//v1/chat/completions",
            "/v1/chat/completions/",
            "/V1/Chat/Completions",
            "/v1/chat%2Fcompletions",
            "/v1/%63hat/completions?x=/embeddings",
            "/v1/./chat/x/../completions",
            "/v1/embeddings/../chat/completions",
            "/openai/deployments/x/chat/completions?api-version=1",
            "/chat/completions",
            "/v1\\chat\\completions",
        ] {
            check("POST", path, "judged openai-chat");
        }
        check("POST", "/v1/responses", "judged openai-responses");
        check("POST", "/backend-api/codex/responses", "judged openai-responses");
        check("POST", "/v1/messages?beta=true", "judged anthropic-messages");
        check("POST", "/v1beta/models/m:generateContent", "judged gemini-generate");
        check("POST", "/v1beta/models/m%3AstreamGenerateContent?alt=sse", "judged gemini-generate");
        check(
            "POST",
            "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
            "judged gemini-generate",
        );
    }

    #[test]
    fn routes_that_give_no_text_are_harmless() {
        for path in [
            "/v1/embeddings",
            "/v1/moderations",
            "/v1/messages/count_tokens",
            "/v1beta/models/m:countTokens",
            "/v1beta/models/m:embedContent",
            "/v1beta/models/m:batchEmbedContents",
            "/v1/responses/input_tokens",
            "/v1/rerank",
            "/tokenize",
        ] {
            check("POST", path, "harmless");
        }
        for path in [
            "/v1/models",
            "/v1/models/gpt-4",
            "/v1/models/org/name",
            "/v1beta/models/m",
            "/props",
            "/v1/health",
            "/api/version",
            "/",
        ] {
            check("GET", path, "harmless");
            check("HEAD", path, "harmless");
        }
        check("OPTIONS", "/v1/chat/completions", "harmless");
    }

    #[test]
    fn everything_else_is_unknown() {
        for (method, path, wire) in [
            ("POST", "/v1/completions", "openai-chat"),
            ("POST", "/v1/threads/t/runs", "openai-chat"),
            ("POST", "/v1/batches", "openai-chat"),
            ("POST", "/v1/messages/batches", "anthropic-messages"),
            ("GET", "/v1/messages/batches/b/results", "anthropic-messages"),
            ("POST", "/v1/complete", "anthropic-messages"),
            ("GET", "/v1/responses/resp_1", "openai-responses"),
            ("POST", "/v1/images/generations", "openai-chat"),
            ("POST", "/v1/audio/speech", "openai-chat"),
            ("GET", "/v1/realtime", "openai-chat"),
            ("POST", "/api/chat", "openai-chat"),
            ("POST", "/api/generate", "openai-chat"),
            ("POST", "/v1beta/models/m:batchGenerateContent", "gemini-generate"),
            ("GET", "/v1/chat/completions", "openai-chat"),
            ("PUT", "/v1/chat/completions", "openai-chat"),
            ("post", "/v1/chat/completions", "openai-chat"),
            ("POST", "/v1/models", "openai-chat"),
            ("POST", "/v1/chat/completions/x", "openai-chat"),
            ("GET", "/v1beta/models/m:generateContent", "gemini-generate"),
            ("POST", "/v1/chat%252Fcompletions", "openai-chat"),
            ("POST", "/v1beta/openai%zz", "gemini-generate"),
        ] {
            check(method, path, &format!("unknown {wire}"));
        }
    }
}
