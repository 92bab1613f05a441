//! Callers of the API, which may be away, slow, or starting.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use ringfence_tests::Client;
use serde_json::Value;
use tokio::time::sleep;

use crate::error::CampaignError;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(4);

/// All APIs of the service, called in turn.
pub struct Api {
    clients: Vec<Client>,
    turn: AtomicUsize,
}

/// An answer.
pub struct Answered {
    pub status: u16,
    pub body: Value,
}

impl Answered {
    /// A short form for the log.
    pub fn words(&self) -> String {
        let code = self.body["errors"][0]["code"].as_str().unwrap_or_default();
        format!("{} {code}", self.status)
    }

    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Api {
    pub fn new(clients: Vec<Client>) -> Self {
        Self {
            clients,
            turn: AtomicUsize::new(0),
        }
    }

    /// Calls one of the APIs; `None` without an answer.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Option<Answered> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let client = self.clients.get(turn % self.clients.len().max(1))?;
        let mut request = client.request(method, path).timeout(PATIENCE);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.ok()?;
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Some(Answered { status, body })
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        let answered = self.ask(Method::GET, path, None).await?;
        answered.is_ok().then_some(answered.body)
    }

    pub async fn post(&self, path: &str, body: Value) -> Option<Answered> {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Option<Answered> {
        self.ask(Method::PUT, path, Some(body)).await
    }

    /// Repeats a request until it succeeds, for a minute: workers and engines may be starting.
    pub async fn insist(&self, method: Method, path: &str, body: Value) -> Result<Value, CampaignError> {
        let mut found = "no answer".to_owned();
        for _ in 0..300 {
            if let Some(answered) = self.ask(method.clone(), path, Some(body.clone())).await {
                if answered.is_ok() {
                    return Ok(answered.body);
                }
                found = format!("{} {}", answered.status, answered.body);
            }
            sleep(Duration::from_millis(200)).await;
        }
        Err(CampaignError::Unexpected {
            what: format!("success of {method} {path}"),
            found,
        })
    }
}
