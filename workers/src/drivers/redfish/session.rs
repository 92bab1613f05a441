//! Sessions (DSP0266, section 13.3.4): one login for all requests of an attempt where the service offers it, Basic elsewhere.

use reqwest::header::HeaderValue;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection::Connection;
use crate::WorkerError;
use ringfence_backends::http::{Reply, Request};

const SERVICE_ROOT: &str = "/redfish/v1/";

/// How the requests of one attempt show who they are from.
pub(super) enum Session {
    Basic,
    Token {
        token: HeaderValue,
        /// What to delete afterwards.
        location: Option<String>,
    },
}

impl Session {
    /// A service that tells nothing of sessions, or has none to give, is asked with Basic; one that refuses the login has refused.
    pub(super) async fn open(connection: &Connection<'_>, until: Instant) -> Result<Self, WorkerError> {
        let Some(sessions) = sessions_path(connection, until).await else {
            return Ok(Self::Basic);
        };
        let login = json!({ "UserName": connection.username, "Password": connection.password });
        let Ok(request) = connection.request(Method::POST, &sessions) else {
            return Ok(Self::Basic);
        };
        match connection.send(request.json(&login), until).await {
            Ok(reply) if matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(
                WorkerError::refused(format!("the login was refused: {}", reply.words())),
            ),
            Ok(reply) if reply.status.is_success() => Ok(Self::from_reply(&reply)),
            Ok(_) => Ok(Self::Basic),
            Err(why) => Err(WorkerError::unclear(why)),
        }
    }

    fn from_reply(reply: &Reply) -> Self {
        let Some(token) = reply.headers.get("x-auth-token") else {
            return Self::Basic;
        };
        let mut token = token.clone();
        token.set_sensitive(true);
        let header = reply
            .headers
            .get("location")
            .and_then(|l| l.to_str().ok())
            .map(str::to_owned);
        let location = header.or_else(|| reply.json()?["@odata.id"].as_str().map(str::to_owned));
        Self::Token { token, location }
    }

    pub(super) fn sign(&self, request: Request, connection: &Connection<'_>) -> Request {
        match self {
            Self::Basic => request.basic(connection.username, connection.password),
            Self::Token { token, .. } => request.header("x-auth-token", token.clone()),
        }
    }

    pub(super) fn is_token(&self) -> bool {
        matches!(self, Self::Token { .. })
    }

    /// Frees the controller's slot. One that cannot be freed runs out by itself.
    pub(super) async fn close(self, connection: &Connection<'_>, until: Instant) {
        let Self::Token {
            location: Some(location),
            ..
        } = &self
        else {
            return;
        };
        if let Ok(request) = connection.request(Method::DELETE, location) {
            let _ = connection.send(self.sign(request, connection), until).await;
        }
    }
}

/// The service root needs no login (DSP0266, section 13.3.1).
async fn sessions_path(connection: &Connection<'_>, until: Instant) -> Option<String> {
    let left = until.saturating_duration_since(Instant::now());
    let request = connection.request(Method::GET, SERVICE_ROOT).ok()?;
    let reply = connection.send(request, until - left * 2 / 3).await.ok()?;
    let root: Value = reply.json().filter(|_| reply.status.is_success())?;
    root["Links"]["Sessions"]["@odata.id"].as_str().map(str::to_owned)
}
