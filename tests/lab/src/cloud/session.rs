//! Tokens and connections.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{Request, Response};

use crate::cloud::{Call, Cloud, User};
use crate::error::LabError;
use crate::openstack::OPENSTACK_PASSWORD;

/// Longer than the minute that Nova waits for a host that does not answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

#[derive(Clone, Debug)]
struct Session {
    token: String,
    project: String,
}

/// The open connections, and the tokens so far. Tokens live for a day.
#[derive(Debug)]
pub(crate) struct Sessions {
    agent: Agent,
    open: Mutex<BTreeMap<User, Session>>,
}

impl Default for Sessions {
    fn default() -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_LIMIT))
            .proxy(None)
            .build();
        Self {
            agent: config.into(),
            open: Mutex::default(),
        }
    }
}

impl Cloud {
    /// A token of the user for its project.
    ///
    /// # Errors
    /// If Keystone cannot be reached or refuses.
    pub fn token(&self, user: User) -> Result<String, LabError> {
        self.session(user).map(|session| session.token)
    }

    /// The id of the user's project.
    ///
    /// # Errors
    /// As [`token`](Self::token).
    pub fn project(&self, user: User) -> Result<String, LabError> {
        self.session(user).map(|session| session.project)
    }

    /// Sends a request, and returns the status and the text of the answer.
    pub(crate) fn send(&self, call: &Call) -> Result<(u16, String), LabError> {
        let session = self.session(call.user)?;
        let mut request = Request::builder()
            .method(call.method)
            .uri(self.address(call, &session.project))
            .header("X-Auth-Token", session.token);
        if let Some((name, value)) = call.api.version() {
            request = request.header(name, value);
        }
        if call.with_service_token {
            request = request.header("X-Service-Token", self.token(User::Fencing)?);
        }
        let what = || call.text();
        let mut answer = self.carry(request, call.body.as_ref(), what)?;
        Ok((answer.status().as_u16(), read_text(&mut answer, what)?))
    }

    fn address(&self, call: &Call, project: &str) -> String {
        let catalogue = &self.description().endpoints;
        let base = call.base.as_ref().or_else(|| catalogue.get(call.api.kind()));
        let base = base.map_or("http://127.0.0.1:0", String::as_str);
        let base = base
            .replace("%(project_id)s", project)
            .replace("%(tenant_id)s", project);
        format!("{base}{}", call.path)
    }

    fn session(&self, user: User) -> Result<Session, LabError> {
        let mut open = self.inner.sessions.open.lock();
        if let Some(session) = open.get(&user) {
            return Ok(session.clone());
        }
        let session = self.sign_in(user)?;
        open.insert(user, session.clone());
        Ok(session)
    }

    fn sign_in(&self, user: User) -> Result<Session, LabError> {
        let what = || format!("a token for {}", user.name());
        let address = format!("{}/auth/tokens", self.description().auth_url);
        let request = Request::builder().method("POST").uri(address);
        let mut answer = self.carry(request, Some(&credentials(user)), what)?;
        let status = answer.status().as_u16();
        let token = answer.headers().get("X-Subject-Token").cloned();
        let text = read_text(&mut answer, what)?;
        let Some(token) = token.as_ref().and_then(|token| token.to_str().ok()) else {
            return Err(LabError::Refused {
                what: what(),
                status,
                body: text,
            });
        };
        let body: Value =
            serde_json::from_str(&text).map_err(|source| LabError::Json { what: what(), source })?;
        Ok(Session {
            token: token.to_owned(),
            project: body["token"]["project"]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    fn carry(
        &self,
        request: ureq::http::request::Builder,
        body: Option<&Value>,
        what: impl Fn() -> String,
    ) -> Result<Response<ureq::Body>, LabError> {
        let unreachable = |source: ureq::Error| LabError::Unreachable {
            what: what(),
            source: Box::new(source),
        };
        let malformed = |source: ureq::http::Error| unreachable(source.into());
        let agent = &self.inner.sessions.agent;
        match body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                let request = request.body(body.to_string()).map_err(malformed)?;
                agent.run(request).map_err(unreachable)
            }
            None => {
                let request = request.body(()).map_err(malformed)?;
                agent.run(request).map_err(unreachable)
            }
        }
    }
}

fn read_text(answer: &mut Response<ureq::Body>, what: impl Fn() -> String) -> Result<String, LabError> {
    answer
        .body_mut()
        .read_to_string()
        .map_err(|source| LabError::Unreachable {
            what: what(),
            source: Box::new(source),
        })
}

fn credentials(user: User) -> Value {
    let domain = json!({"name": "Default"});
    let who = json!({"name": user.name(), "domain": domain, "password": OPENSTACK_PASSWORD});
    json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": who}},
        "scope": {"project": {"name": user.project(), "domain": domain}},
    }})
}
