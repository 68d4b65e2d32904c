//! What the gateway writes to standard error: a line for each request and each thing hooks did, for machines or people.

use crate::config::LogName;
use hookgate_core::word::Word;
use hookgate_server::gateway::{Happened, Line};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::SystemTime;

/// The log. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Log(LogName);

impl Log {
    pub(super) fn new(form: LogName) -> Log {
        Log(form)
    }

    /// A line of the gateway itself. It is said also where the log is off: it is about starting and stopping.
    pub(super) fn say(&self, text: &str) {
        match self.0 {
            LogName::Json => self.write(json!({"kind": "gateway", "message": text})),
            LogName::Text | LogName::Off => put(&format!("hookgate gateway: {text}\n")),
        }
    }

    /// What happened.
    pub(super) fn note(&self, what: &Happened<'_>) {
        if self.0 == LogName::Off {
            return;
        }
        let Some((kind, fields)) = fields_of(what) else { return };
        match self.0 {
            LogName::Json => {
                let mut line = Map::from_iter([("kind".to_owned(), Value::from(kind))]);
                line.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
                self.write(Value::Object(line));
            }
            LogName::Text => {
                let fields = fields.iter().map(|(name, value)| match value {
                    Value::String(text) => format!(" {name}={}", one_line(text)),
                    other => format!(" {name}={other}"),
                });
                put(&format!("{kind}{}\n", fields.collect::<String>()));
            }
            LogName::Off => {}
        }
    }

    fn write(&self, mut line: Value) {
        let now =
            jiff::Timestamp::try_from(SystemTime::now()).map(|now| format!("{now:.3}")).unwrap_or_default();
        if let Some(fields) = line.as_object_mut() {
            fields.shift_insert(0, "time".to_owned(), Value::from(now));
        }
        put(&format!("{line}\n"));
    }
}

/// One write a line, so that lines of several threads do not mix. A closed output is nobody's fault.
fn put(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn one_line(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != '"');
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

type Fields = Vec<(&'static str, Value)>;

/// The kind of line and its fields; none for what only metrics need.
fn fields_of(what: &Happened<'_>) -> Option<(&'static str, Fields)> {
    let with_tenant = |tenant: &Option<&str>, fields: Fields| {
        let tenant = tenant.map(|tenant| ("tenant", Value::from(tenant)));
        tenant.into_iter().chain(fields).collect::<Fields>()
    };
    Some(match what {
        Happened::Request(line) => ("request", request(line)),
        Happened::Blocked { tenant, what, block } => {
            let fields =
                vec![("what", json!(what)), ("hook", json!(&*block.by)), ("reason", json!(block.reason))];
            ("blocked", with_tenant(tenant, fields))
        }
        Happened::Interrupted { tenant, hook, resend } => {
            ("interrupted", with_tenant(tenant, vec![("hook", json!(hook)), ("resend", json!(resend))]))
        }
        Happened::Resent { tenant, hook } => ("resent", with_tenant(tenant, vec![("hook", json!(hook))])),
        Happened::Log { tenant, session, hook, level, text } => {
            let fields = vec![
                ("level", json!(level.as_str())),
                ("hook", json!(&***hook)),
                ("session", json!(session)),
                ("message", json!(text)),
            ];
            ("hook", with_tenant(tenant, fields))
        }
        Happened::Warned { tenant, warning } => {
            let fields = vec![
                ("hook", json!(&*warning.hook)),
                ("code", json!(warning.code.as_str())),
                ("message", json!(warning.text)),
            ];
            ("warning", with_tenant(tenant, fields))
        }
        Happened::Decided { .. } | Happened::Fired { .. } | Happened::Held { .. } => return None,
    })
}

fn request(line: &Line) -> Fields {
    let ms = |duration: std::time::Duration| json!((duration.as_secs_f64() * 10_000.0).round() / 10.0);
    let mut fields: Fields =
        vec![("id", json!(line.id)), ("method", json!(line.method)), ("path", json!(line.path))];
    let named =
        [("tenant", line.tenant.as_deref()), ("session", some(&line.session)), ("model", some(&line.model))];
    fields.extend(named.into_iter().filter_map(|(name, text)| Some((name, json!(text?)))));
    fields.extend([("status", json!(line.status)), ("bytes", json!(line.bytes))]);
    fields.extend(line.upstream.map(|upstream| ("upstream_ms", ms(upstream))));
    fields.push(("ms", ms(line.took)));
    if !line.complete {
        fields.push(("complete", json!(false)));
    }
    fields.extend(line.error.as_ref().map(|error| ("error", json!(error))));
    fields
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
