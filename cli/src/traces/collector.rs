//! The collector, as the configuration names it.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::config::{SecretUrl, Settings, TraceSettings};
use crate::error::CliError;

/// No file of headers is longer.
const MAX_BYTES: u64 = 64 * 1024;

/// Nothing is sent yet.
pub(super) fn exporter(
    role: &'static str,
    endpoint: &SecretUrl,
    settings: &Settings,
) -> Result<SpanExporter, CliError> {
    let fault = |error| CliError::service("traces", "cannot be set up", error);
    let base = endpoint.expose().trim_end_matches('/');
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client(&settings.traces)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{base}/v1/traces"))
        .with_timeout(Duration::from_millis(settings.traces.timeout_ms))
        .build()
        .map_err(fault)?;
    exporter.set_resource(&resource(role, settings));
    Ok(exporter)
}

/// Who sends, in the words of OpenTelemetry's conventions.
fn resource(role: &'static str, settings: &Settings) -> Resource {
    let instance = match role {
        "worker" => &settings.worker.name,
        _ => &settings.engine.name,
    };
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", settings.traces.service_name.clone()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", format!("{role}/{instance}")),
            KeyValue::new("ringfence.role", role),
        ])
        .build()
}

fn client(settings: &TraceSettings) -> Result<reqwest::Client, CliError> {
    let fault = |error: reqwest::Error| CliError::service("traces", "cannot be set up", error);
    // A redirect would take the headers to another host.
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_millis(settings.timeout_ms));
    if let Some(path) = &settings.headers_file {
        builder = builder.default_headers(headers(path)?);
    }
    if let Some(path) = &settings.ca_file {
        let pem = std::fs::read(path)
            .map_err(|e| CliError::file("read the certificate authority of the collector", path, e))?;
        builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&pem).map_err(fault)?);
    }
    builder.build().map_err(fault)
}

/// Reads the headers. A file that group or others may touch is refused, for they are secrets.
fn headers(path: &Path) -> Result<HeaderMap, CliError> {
    let fault = |source| CliError::file("read the headers", path, source);
    let content = |why: String| CliError::Content {
        path: path.to_owned(),
        why,
    };
    let file = std::fs::File::open(path).map_err(fault)?;
    let mode = file.metadata().map_err(fault)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(content(format!(
            "has mode {mode:04o}; only its owner may read it (chmod 600)"
        )));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(fault)?;
    parse(&text).map_err(content)
}

/// What is wrong is said without showing any part of a value.
fn parse(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("line {number}: write name: value"))?;
        let name: HeaderName = name
            .trim()
            .parse()
            .map_err(|_| format!("line {number}: this is no name of a header"))?;
        let mut value: HeaderValue = value.trim().parse().map_err(|_| {
            format!("line {number}: the value of {name} has characters that no header may have")
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = parse("# of the collector\n\nAuthorization: Bearer hush\nx-tenant:a\n").unwrap();
        assert_eq!(headers["authorization"], "Bearer hush");
        assert_eq!(headers["x-tenant"], "a");
        assert!(!format!("{headers:?}").contains("hush"));
    }

    #[test]
    fn a_bad_line_is_named_and_not_shown() {
        for text in ["x: y\nhush", "x: y\nhush hush: y", "x: y\nz: hush\u{7f}"] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with("line 2: ") && !why.contains("hush"), "{why}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "authorization: Bearer hush\n").unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let error = headers(file.path()).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("hush"), "{error}");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(headers(file.path()).unwrap().len(), 1);
    }
}
