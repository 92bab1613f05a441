//! Calls of the API with an administrator's rights.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Request;
use ureq::http::request::Builder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::cloud::wait::{Seen, wait_for};
use crate::error::LabError;

const ANSWER_LIMIT: Duration = Duration::from_secs(30);
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// A client of the API. All copies share their connections.
#[derive(Clone, Debug)]
pub struct KubeApi {
    agent: Agent,
    url: String,
    token: String,
}

impl KubeApi {
    pub(super) fn new(url: &str, authority: &str, token: &str) -> Result<Self, LabError> {
        let root = Certificate::from_pem(authority.as_bytes()).map_err(|source| LabError::Unreachable {
            what: "reading the authority's certificate".to_owned(),
            source: Box::new(source),
        })?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[root]))
            .build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_LIMIT))
            .proxy(None)
            .tls_config(tls)
            .build();
        Ok(Self {
            agent: config.into(),
            url: url.to_owned(),
            token: token.to_owned(),
        })
    }

    /// A client of the holder of another token, by way of another address.
    #[must_use]
    pub fn by_way_of(&self, url: &str, token: &str) -> Self {
        Self {
            agent: self.agent.clone(),
            url: url.to_owned(),
            token: token.to_owned(),
        }
    }

    /// Reads an object or a list.
    ///
    /// # Errors
    /// If the API server cannot be reached or refuses.
    pub fn get(&self, path: &str) -> Result<Value, LabError> {
        self.call("GET", path, None)
    }

    /// Reads an object, if it exists.
    ///
    /// # Errors
    /// As [`get`](Self::get), except that there is no such object.
    pub fn find(&self, path: &str) -> Result<Option<Value>, LabError> {
        match self.get(path) {
            Ok(found) => Ok(Some(found)),
            Err(LabError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The numbers of the API server itself, in Prometheus' text form.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn metrics(&self) -> Result<String, LabError> {
        self.text("GET", "/metrics", None)
    }

    /// Makes an object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn post(&self, path: &str, object: &Value) -> Result<Value, LabError> {
        self.call("POST", path, Some((JSON, object)))
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn patch(&self, path: &str, change: &Value) -> Result<Value, LabError> {
        self.call("PATCH", path, Some((MERGE_PATCH, change)))
    }

    /// Says of a node's condition what a problem detector says of it; the others stay as they are.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn set_condition(
        &self,
        node: &str,
        name: &str,
        status: &str,
        reason: &str,
    ) -> Result<Value, LabError> {
        let condition = json!({ "type": name, "status": status, "reason": reason });
        let change = json!({ "status": { "conditions": [condition] } });
        let path = format!("/api/v1/nodes/{node}/status");
        self.call("PATCH", &path, Some((STRATEGIC_PATCH, &change)))
    }

    /// Deletes an object, with `DeleteOptions` such as `{"gracePeriodSeconds": 0}`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn delete(&self, path: &str, options: &Value) -> Result<Value, LabError> {
        self.call("DELETE", path, Some((JSON, options)))
    }

    /// Deletes a pod at once, if it still is the one with this uid.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn force_delete_pod(&self, namespace: &str, name: &str, uid: &str) -> Result<(), LabError> {
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        self.delete(&format!("/api/v1/namespaces/{namespace}/pods/{name}"), &options)
            .map(|_| ())
    }

    /// Waits until an object or a list is as wanted, and returns it. An object that does not exist is `null`. The API server may be out of
    /// reach meanwhile.
    ///
    /// # Errors
    /// If the state does not come in time.
    pub fn until(
        &self,
        what: &str,
        path: &str,
        limit: Duration,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value, LabError> {
        wait_for(
            || what.to_owned(),
            limit,
            || {
                Ok(match self.find(path).map(Option::unwrap_or_default) {
                    Ok(found) if is_so(&found) => Seen::Enough(found),
                    Ok(found) => Seen::NotYet(in_short(found)),
                    Err(error) => Seen::NotYet(error.to_string()),
                })
            },
        )
    }

    /// Every version of an object since the version `after`, the oldest first.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn versions(&self, list: &str, name: &str, after: &str) -> Result<Vec<Value>, LabError> {
        let changes = self.changes(&format!("{list}?fieldSelector=metadata.name={name}"), after)?;
        Ok(changes.into_iter().map(|(_, object)| object).collect())
    }

    /// Every change of the objects of a list since the version `after`, the oldest first: its kind, as a watch names it, and the object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn changes(&self, list: &str, after: &str) -> Result<Vec<(String, Value)>, LabError> {
        let more = if list.contains('?') { '&' } else { '?' };
        let path = format!("{list}{more}watch=1&resourceVersion={after}&timeoutSeconds=1");
        let what = || format!("GET {path}");
        let text = self.text("GET", &path, None)?;
        let change = |line: &str| {
            let mut event: Value = serde_json::from_str(line)?;
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            Ok((kind, event["object"].take()))
        };
        let changes: Result<_, serde_json::Error> = text.lines().map(change).collect();
        changes.map_err(|source| LabError::Json { what: what(), source })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Whether the API server says that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        let request = self.request("GET", "/readyz").body(());
        request.is_ok_and(|request| self.agent.run(request).is_ok_and(|answer| answer.status() == 200))
    }

    fn call(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<Value, LabError> {
        let text = self.text(method, path, body)?;
        let what = format!("{method} {path}");
        serde_json::from_str(&text).map_err(|source| LabError::Json { what, source })
    }

    fn text(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<String, LabError> {
        let what = || format!("{method} {path}");
        let unreachable = |source: ureq::Error| LabError::Unreachable {
            what: what(),
            source: Box::new(source),
        };
        let malformed = |source: ureq::http::Error| unreachable(source.into());
        let request = self.request(method, path);
        let mut answer = match body {
            Some((kind, body)) => {
                let request = request.header("Content-Type", kind).body(body.to_string());
                self.agent.run(request.map_err(malformed)?).map_err(unreachable)?
            }
            None => {
                let request = request.body(()).map_err(malformed)?;
                self.agent.run(request).map_err(unreachable)?
            }
        };
        let status = answer.status().as_u16();
        let text = answer.body_mut().read_to_string().map_err(unreachable)?;
        if !(200..300).contains(&status) {
            return Err(LabError::Refused {
                what: what(),
                status,
                body: text,
            });
        }
        Ok(text)
    }

    fn request(&self, method: &str, path: &str) -> Builder {
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Accept", JSON)
    }
}

/// Without what says which client has set which field.
fn in_short(mut found: Value) -> String {
    if let Some(metadata) = found["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    found.to_string()
}
