//! A client of the API, for tests.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use reqwest::Method;
use serde_json::{Value, json};

/// A client that sends one token with every request.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Answer {
    /// The code of the first error.
    pub fn code(&self) -> &str {
        self.body["errors"][0]["code"].as_str().unwrap_or_default()
    }

    /// The messages of all errors, in one text.
    pub fn details(&self) -> String {
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        errors
            .iter()
            .filter_map(|error| error["detail"].as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body; panics unless the answer has this status.
    #[track_caller]
    pub fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

impl Client {
    pub fn new(base: &str, token: Option<&str>) -> Self {
        Self::trusting(base, token, rustls::RootCertStore::empty())
    }

    /// A client over TLS that trusts this authority (PEM) and no other.
    pub fn with_authority(base: &str, token: Option<&str>, authority: &str) -> Self {
        Self::trusting(base, token, trusted(authority))
    }

    fn trusting(base: &str, token: Option<&str>, trusted: rustls::RootCertStore) -> Self {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(trusted))
            .timeout(Duration::from_secs(40))
            .build()
            .unwrap();
        Self {
            http,
            base: base.to_owned(),
            token: token.map(ToOwned::to_owned),
        }
    }

    /// The address of the API.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The token that the client sends.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self {
            token: token.map(ToOwned::to_owned),
            ..self.clone()
        }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.header("X-Auth-Token", token),
            None => request,
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Answer {
            status,
            headers,
            body,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    /// Posts with an `Idempotency-Key`.
    pub async fn post_once(&self, path: &str, key: &str, body: Value) -> Answer {
        let request = self.request(Method::POST, path);
        self.send(request.header("Idempotency-Key", key).json(&body))
            .await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::PUT, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Deletes with a reason.
    pub async fn delete_because(&self, path: &str, reason: &str) -> Answer {
        let body = json!({ "reason": reason });
        self.send(self.request(Method::DELETE, path).json(&body)).await
    }

    /// Reports a host's failure state as a monitor would.
    pub async fn seen(&self, host: &str, state: &str) -> Answer {
        self.seen_with_boot(host, state, None).await
    }

    pub async fn seen_with_boot(&self, host: &str, state: &str, boot_id: Option<&str>) -> Answer {
        let observed_at = now();
        let body = json!({ "failure_state": state, "source": "test", "observed_at": observed_at, "boot_id": boot_id });
        self.put(&format!("/hosts/{host}/failure-state"), body).await
    }

    /// Reports a host's failure state as a monitor that heard the host last at this moment, or never.
    pub async fn reports(&self, host: &str, state: &str, last_seen_at: Option<DateTime<Utc>>) -> Answer {
        let observed_at = now();
        let body = json!({ "failure_state": state, "source": "test", "observed_at": observed_at, "last_seen_at": last_seen_at });
        self.put(&format!("/hosts/{host}/failure-state"), body).await
    }

    /// Asks for a fence and returns its operation.
    pub async fn fence(&self, host: &str) -> Value {
        self.post(&format!("/hosts/{host}/fence"), json!({ "reason": "test" }))
            .await
            .ok(202)
    }

    /// Waits until `path` answers 200 with a body for which `is` is true.
    pub async fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.until_within(path, Duration::from_secs(60), is).await
    }

    pub async fn until_within(&self, path: &str, patience: Duration, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + patience;
        loop {
            let answer = self.get(path).await;
            if answer.status == 200 && is(&answer.body) {
                return answer.body;
            }
            assert!(
                Instant::now() < deadline,
                "the answer of {path} did not become the expected one; the last was: {}",
                answer.body
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn until_fenced(&self, host: &str) -> Value {
        let path = format!("/hosts/{host}");
        self.until(&path, |host| host["fencing_state"] == "FENCED").await
    }

    pub async fn until_unfenced(&self, host: &str) -> Value {
        let path = format!("/hosts/{host}");
        self.until(&path, |host| host["fencing_state"] == "UNFENCED")
            .await
    }

    pub async fn cancel(&self, operation: &Value, reason: &str) -> Value {
        let path = format!("/operations/{}/cancel", operation["id"].as_str().unwrap());
        self.post(&path, json!({ "reason": reason })).await.ok(200)
    }

    pub async fn retry(&self, operation: &Value, reason: &str) -> Value {
        let path = format!("/operations/{}/retry", operation["id"].as_str().unwrap());
        self.post(&path, json!({ "reason": reason })).await.ok(200)
    }

    /// Waits until a worker carries out the operation's first attempt.
    pub async fn until_claimed(&self, operation: &Value) {
        let path = format!("/operations/{}", operation["id"].as_str().unwrap());
        let first = |operation: &Value| operation["stages"][0]["tasks"][0]["attempts"][0].clone();
        self.until(&path, |operation| first(operation)["status"] == "claimed")
            .await;
    }

    /// Waits until the operation has ended or needs an operator.
    pub async fn until_settled(&self, operation: &Value) -> Value {
        let path = format!("/operations/{}", operation["id"].as_str().unwrap());
        self.until(&path, |operation| operation["status"] != "running")
            .await
    }

    pub async fn host(&self, host: &str) -> Value {
        self.get(&format!("/hosts/{host}")).await.ok(200)
    }

    pub async fn gates(&self, host: &str) -> Value {
        self.get(&format!("/hosts/{host}/gates")).await.ok(200)
    }

    /// The kinds of a host's events, in order, each with the operation's kind where there is one.
    pub async fn event_types(&self, host: &str) -> Vec<String> {
        let events = self.get(&format!("/events?host={host}&limit=1000")).await.ok(200);
        let events = events["events"].as_array().unwrap();
        events
            .iter()
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a monitor outside of the service tells its own time"
)]
/// The present time.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

fn trusted(authority: &str) -> rustls::RootCertStore {
    use rustls::pki_types::pem::PemObject;
    let certificate = rustls::pki_types::CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    let mut trusted = rustls::RootCertStore::empty();
    trusted.add(certificate).unwrap();
    trusted
}

/// A client over TLS that trusts this authority (PEM) and no other, and has no time limit.
pub(crate) fn http_client(authority: &str) -> reqwest::ClientBuilder {
    reqwest::Client::builder().tls_backend_preconfigured(tls(trusted(authority)))
}

fn tls(trusted: rustls::RootCertStore) -> rustls::ClientConfig {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted)
        .with_no_client_auth()
}
