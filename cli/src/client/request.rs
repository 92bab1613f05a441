//! Requests to the service.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A device may be slow, and a worker passes its answer on.
const CHECK_TIMEOUT: Duration = Duration::from_secs(330);

/// A request.
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

    /// Reads an object.
    #[must_use]
    pub fn get(path: &[&'a str]) -> Self {
        Self::new(Method::GET, path)
    }

    /// Adds an object, or starts an action.
    #[must_use]
    pub fn post(path: &[&'a str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::POST, path)
        }
    }

    /// Replaces an object.
    #[must_use]
    pub fn put(path: &[&'a str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::PUT, path)
        }
    }

    /// Changes an object.
    #[must_use]
    pub fn patch(path: &[&'a str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::PATCH, path)
        }
    }

    /// Deletes an object.
    #[must_use]
    pub fn delete(path: &[&'a str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Sets the body.
    #[must_use]
    pub fn saying(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Adds a query parameter, if there is a value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Asks a method's device for its state, for one host or without a host.
    #[must_use]
    pub fn check(method: &'a str, host: Option<&str>) -> Self {
        let body = host.map_or_else(|| json!({}), |host| json!({ "host": host }));
        Self {
            timeout: CHECK_TIMEOUT,
            ..Self::post(&["methods", method, "check"], body)
        }
    }

    /// Adds an idempotency key: the service carries the request out once, however often it is sent.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.key = Some(Uuid::new_v4().to_string());
        self
    }

    /// Adds `If-Match`: the service refuses if the object has changed since it was read.
    #[must_use]
    pub fn if_match(mut self, etag: Option<String>) -> Self {
        self.etag = etag;
        self
    }
}
