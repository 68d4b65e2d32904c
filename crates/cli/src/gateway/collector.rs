//! Where traces go: the configuration says, else the variables that every OpenTelemetry program reads.

use super::settings::Environment;
use crate::failure::{Failure, with_causes};
use hookgate_server::traces::Collector;

/// The address of a collector for all signals; traces go to `/v1/traces` below it.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The address for traces, as it is.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// `name=value,name=value`, sent along.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TRACES_HEADERS: &str = "OTEL_EXPORTER_OTLP_TRACES_HEADERS";
const SERVICE: &str = "OTEL_SERVICE_NAME";
/// `true`: no telemetry at all, whatever else is said in the environment.
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The collector, if there is to be one.
pub(super) fn find(
    configured: Option<&str>,
    environment: Environment<'_>,
) -> Result<Option<Collector>, Failure> {
    let variable = |name: &str| {
        environment(name).and_then(|value| value.into_string().ok()).filter(|value| !value.trim().is_empty())
    };
    let service = variable(SERVICE).unwrap_or_else(|| "hookgate".to_owned());
    let disabled = variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let found = match (configured, variable(TRACES_ENDPOINT), variable(ENDPOINT)) {
        (Some(base), ..) => Collector::below(base, &service),
        _ if disabled => return Ok(None),
        (None, Some(address), _) => Collector::at(&address, &service),
        (None, None, Some(base)) => Collector::below(&base, &service),
        (None, None, None) => return Ok(None),
    };
    let mut collector = found.map_err(|error| Failure::new(with_causes(&error)))?;
    let headers = variable(TRACES_HEADERS).or_else(|| variable(HEADERS)).unwrap_or_default();
    for pair in headers.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        collector = collector
            .with_header(name.trim(), value.trim())
            .map_err(|error| Failure::new(with_causes(&error)))?;
    }
    Ok(Some(collector))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[track_caller]
    fn check(configured: Option<&str>, variables: &[(&str, &str)], want: &str) {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let said = match find(configured, &environment) {
            Ok(None) => "none".to_owned(),
            Ok(Some(collector)) => format!("{collector:?}"),
            Err(failure) => failure.to_string(),
        };
        assert!(said.contains(want), "`{said}` lacks `{want}`");
    }

    #[test]
    fn the_file_beats_the_environment() {
        check(None, &[], "none");
        check(None, &[(ENDPOINT, " ")], "none");
        check(Some("http://f:1"), &[(TRACES_ENDPOINT, "http://e:2")], "http://f:1/v1/traces");
        check(None, &[(TRACES_ENDPOINT, "http://e:2/x"), (ENDPOINT, "http://e:3")], "uri: http://e:2/x,");
        check(None, &[(ENDPOINT, "http://e:3")], "http://e:3/v1/traces");
        check(None, &[(ENDPOINT, "http://e:3"), (SERVICE, "mine")], "service: \"mine\"");
        check(None, &[(ENDPOINT, "http://e:3")], "service: \"hookgate\"");
        check(None, &[(ENDPOINT, "http://e:3"), (DISABLED, "TRUE")], "none");
        check(Some("http://f:1"), &[(HEADERS, "x-key = v, y=2")], "\"x-key\": Sensitive, \"y\": Sensitive");
        check(Some("http://f:1"), &[(HEADERS, "bad name=1")], "the header `bad name`");
        check(Some("f:1"), &[], "is no address");
    }
}
