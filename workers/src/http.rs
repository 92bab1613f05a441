//! HTTP to a device: bounded in time and size, never redirected.

use std::sync::Once;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode};
use ringfence_core::error_chain;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::WorkerError;

/// The largest answer that is read, in bytes. Systems of large servers have about 50 kB.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A client for plain HTTP on this machine.
pub(crate) fn plain_client() -> Result<Client, WorkerError> {
    build(builder())
}

/// Follows no redirect, so that no credentials go to another host, and uses no proxy.
pub(crate) fn builder() -> ClientBuilder {
    static RING: Once = Once::new();
    RING.call_once(|| {
        // An error means that the process has chosen its provider already, which will do as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
}

pub(crate) fn build(builder: ClientBuilder) -> Result<Client, WorkerError> {
    builder
        .build()
        .map_err(|error| WorkerError::refused(format!("no HTTP client can be made: {}", error_chain(&error))))
}

/// One request.
pub(crate) struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Value>,
    basic: Option<(String, String)>,
}

impl Request {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            basic: None,
        }
    }

    pub(crate) fn json(self, body: Value) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    pub(crate) fn basic(self, username: &str, password: &str) -> Self {
        Self {
            basic: Some((username.to_owned(), password.to_owned())),
            ..self
        }
    }
}

/// An answer, read to its end.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(crate) fn words(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        format!("HTTP {} {body}", self.status.as_u16())
            .trim_end()
            .to_owned()
    }
}

/// Sends and reads the whole answer before `until`; later the connection is dropped. The error says why there is no answer.
pub(crate) async fn send(client: &Client, request: Request, until: Instant) -> Result<Reply, String> {
    let mut outgoing = client
        .request(request.method, request.url)
        .headers(request.headers);
    if let Some((username, password)) = &request.basic {
        outgoing = outgoing.basic_auth(username, Some(password));
    }
    if let Some(body) = &request.body {
        outgoing = outgoing.json(body);
    }
    let exchange = async {
        let response = outgoing
            .send()
            .await
            .map_err(|error| error_chain(&error.without_url()))?;
        read(response).await
    };
    timeout_at(until, exchange)
        .await
        .unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
}

async fn read(mut response: Response) -> Result<Reply, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| error_chain(&error.without_url()))?
    {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(format!("its answer has more than {MAX_BODY_BYTES} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply {
        status: response.status(),
        headers: response.headers().clone(),
        body,
    })
}
