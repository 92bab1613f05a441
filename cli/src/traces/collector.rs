//! The collector of spans, from the configuration.
//!
//! Only the configuration counts: `OTEL_*` variables and proxies of the environment are ignored. A library's exporter would read headers
//! from them, and would count spans that the collector has refused as accepted.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use prost::Message;
use prost::bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode};
use tokio::time::Instant;
use url::Url;

use super::headers::headers;
use crate::config::{SecretUrl, Settings, TraceSettings};
use crate::error::{CliError, error_chain};

/// How much of an answer is read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// How a batch is repeated, as long as there is time.
const AGAIN: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(200))
    .without_max_times();

/// Sends spans to the collector.
pub(super) struct Collector {
    client: Client,
    url: Url,
    timeout: Duration,
    resource: ResourceAttributesWithSchema,
}

/// Why a batch was not accepted. The text has neither the URL nor the collector's answer, which both may hold secrets.
struct Refusal {
    why: String,
    /// Whether another try may help.
    is_passing: bool,
}

impl Refusal {
    fn lost(error: reqwest::Error) -> Self {
        let error = error.without_url();
        Self {
            why: error_chain(&error),
            is_passing: error.is_connect() || error.is_request(),
        }
    }

    fn answered(status: StatusCode) -> Self {
        // The statuses after which OTLP repeats a request.
        let is_passing = matches!(status.as_u16(), 429 | 502 | 503 | 504);
        Self {
            why: format!("the collector answered {status}"),
            is_passing,
        }
    }
}

impl Collector {
    /// Sends nothing.
    pub fn new(role: &'static str, endpoint: &SecretUrl, settings: &Settings) -> Result<Self, CliError> {
        let base = endpoint.expose().trim_end_matches('/');
        let url = format!("{base}/v1/traces");
        Ok(Self {
            client: client(&settings.traces)?,
            url: Url::parse(&url).map_err(|e| CliError::service("traces", "cannot be set up", e))?,
            timeout: Duration::from_millis(settings.traces.timeout_ms),
            resource: (&resource(role, settings)).into(),
        })
    }

    /// Sends spans, and repeats that where it may help and as long as there is time; if `is_last`, sends once. Returns how many of them the
    /// collector has refused.
    pub async fn take(&self, batch: Vec<SpanData>, is_last: bool) -> Result<u64, String> {
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(batch, &self.resource),
        };
        let body = Bytes::from(request.encode_to_vec());
        let until = Instant::now() + self.timeout;
        (|| self.post(body.clone(), until))
            .retry(AGAIN)
            .when(|refusal| refusal.is_passing && !is_last)
            .adjust(|_, pause| pause.filter(|pause| Instant::now() + *pause < until))
            .await
            .map_err(|refusal| refusal.why)
    }

    async fn post(&self, body: Bytes, until: Instant) -> Result<u64, Refusal> {
        let request = self
            .client
            .post(self.url.clone())
            .timeout(until.saturating_duration_since(Instant::now()))
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        let response = request.send().await.map_err(Refusal::lost)?;
        if !response.status().is_success() {
            return Err(Refusal::answered(response.status()));
        }
        let answer = beginning(response).await.map_err(Refusal::lost)?;
        Ok(refused(&answer))
    }
}

async fn beginning(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut answer = Vec::new();
    while answer.len() < MAX_ANSWER_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
}

/// How many spans the collector has refused although it has accepted the batch. An answer that cannot be read counts as none.
fn refused(answer: &[u8]) -> u64 {
    let partial = ExportTraceServiceResponse::decode(answer)
        .ok()
        .and_then(|answer| answer.partial_success);
    partial.map_or(0, |partial| {
        u64::try_from(partial.rejected_spans).unwrap_or_default()
    })
}

/// The sender, by OpenTelemetry's conventions.
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

fn client(settings: &TraceSettings) -> Result<Client, CliError> {
    let fault = |error: reqwest::Error| CliError::service("traces", "cannot be set up", error);
    let mut builder = Client::builder()
        .no_proxy()
        // A redirect would send the headers to another host.
        .redirect(reqwest::redirect::Policy::none());
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

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;

    #[test]
    fn what_the_collector_did_not_want_is_no_success() {
        let answer = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: String::new(),
            }),
        };
        assert_eq!(refused(&answer.encode_to_vec()), 3);
        assert_eq!(refused(&ExportTraceServiceResponse::default().encode_to_vec()), 0);
        assert_eq!(refused(b"not protobuf"), 0);
    }
}
