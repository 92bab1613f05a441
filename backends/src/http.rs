//! HTTP to a device or a service: bounded in time and size, never redirected.

use std::sync::Once;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode};
use ringfence_core::error_chain;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// The largest answer that is read, in bytes. Systems of large servers have about 50 kB.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A client for plain HTTP on this machine.
///
/// # Errors
/// As [`build`].
pub fn plain_client() -> Result<Client, String> {
    build(builder())
}

/// Follows no redirect, so that no credentials go to another host, and uses no proxy.
pub fn builder() -> ClientBuilder {
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

/// Makes a client.
///
/// # Errors
/// Why there is none, in words.
pub fn build(builder: ClientBuilder) -> Result<Client, String> {
    builder
        .build()
        .map_err(|error| format!("no HTTP client can be made: {}", error_chain(&error)))
}

/// One request.
pub struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    basic: Option<(String, String)>,
}

impl Request {
    /// Without headers and body.
    #[must_use]
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            basic: None,
        }
    }

    /// With this body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.bytes(
            HeaderValue::from_static("application/json"),
            body.to_string().into_bytes(),
        )
    }

    /// With this body of this type.
    #[must_use]
    pub fn bytes(mut self, content_type: HeaderValue, body: Vec<u8>) -> Self {
        self.headers.insert(CONTENT_TYPE, content_type);
        Self {
            body: Some(body),
            ..self
        }
    }

    /// With this header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: HeaderValue) -> Self {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// With these credentials.
    #[must_use]
    pub fn basic(self, username: &str, password: &str) -> Self {
        Self {
            basic: Some((username.to_owned(), password.to_owned())),
            ..self
        }
    }
}

/// An answer, read to its end.
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    /// The body, if it is JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Status and body, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        format!("HTTP {} {body}", self.status.as_u16())
            .trim_end()
            .to_owned()
    }
}

/// Sends and reads the whole answer before `until`; later the connection is dropped.
///
/// # Errors
/// Why there is no answer, in words.
pub async fn send(client: &Client, request: Request, until: Instant) -> Result<Reply, String> {
    let mut outgoing = client
        .request(request.method, request.url)
        .headers(request.headers);
    if let Some((username, password)) = &request.basic {
        outgoing = outgoing.basic_auth(username, Some(password));
    }
    if let Some(body) = request.body {
        outgoing = outgoing.body(body);
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
