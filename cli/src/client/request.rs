//! What to ask the service.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A device may be slow, and its answer comes by way of a worker.
const CHECK_TIMEOUT: Duration = Duration::from_secs(330);

/// What to ask.
#[derive(Clone)]
pub struct Request<'a> {
    pub(super) method: Method,
    pub(super) path: Vec<&'a str>,
    pub(super) query: Vec<(&'a str, String)>,
    pub(super) body: Option<Value>,
    pub(super) etag: Option<String>,
    pub(super) key: Option<String>,
    pub(super) last_event: Option<u64>,
    pub(super) timeout: Duration,
}

impl<'a> Request<'a> {
    fn new(method: Method, path: &[&'a str]) -> Self {
        Self {
            method,
            path: path.to_vec(),
            query: Vec::new(),
            body: None,
            etag: None,
            key: None,
            last_event: None,
            timeout: ANSWER_TIMEOUT,
        }
    }

    /// Reads.
    #[must_use]
    pub fn get(path: &[&'a str]) -> Self {
        Self::new(Method::GET, path)
    }

    /// Adds or does something.
    #[must_use]
    pub fn post(path: &[&'a str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::POST, path)
        }
    }

    /// Replaces.
    #[must_use]
    pub fn put(path: &[&'a str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::PUT, path)
        }
    }

    /// Changes.
    #[must_use]
    pub fn patch(path: &[&'a str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::PATCH, path)
        }
    }

    /// Removes.
    #[must_use]
    pub fn delete(path: &[&'a str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With a body.
    #[must_use]
    pub fn saying(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// With a query parameter, if there is a value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Asks a method's device for its state, for one host or for all.
    #[must_use]
    pub fn check(method: &'a str, host: Option<&str>) -> Self {
        let body = host.map_or_else(|| json!({}), |host| json!({ "host": host }));
        Self {
            timeout: CHECK_TIMEOUT,
            ..Self::post(&["methods", method, "check"], body)
        }
    }

    /// To be carried out once, however often it is sent.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.key = Some(Uuid::new_v4().to_string());
        self
    }

    /// Only if the thing is still what was read.
    #[must_use]
    pub fn if_match(mut self, etag: Option<String>) -> Self {
        self.etag = etag;
        self
    }
}
