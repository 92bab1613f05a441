//! One system: its power state, read, and its reset, asked for.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use ringfence_core::{FencingKind, ObservedState};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::reset::Reset;
use super::session::Session;
use crate::act::{Answer, Device, Reading, end_of_first_reading};
use ringfence_backends::http::Reply;

/// After an off, some controllers refuse an `On` with 409 for about a minute (seen with iDRAC).
const ON_RETRIES: u32 = 6;
const ON_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct System<'a> {
    connection: &'a Connection<'a>,
    session: &'a Session,
    /// As the system described it when it was last read.
    reset: Mutex<Option<Reset>>,
}

impl<'a> System<'a> {
    pub(super) fn new(connection: &'a Connection<'a>, session: &'a Session) -> Self {
        Self {
            connection,
            session,
            reset: Mutex::new(None),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        until: Instant,
    ) -> Result<Reply, String> {
        let request = self
            .session
            .sign(self.connection.request(method, path)?, self.connection);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        self.connection.send(request, until).await
    }

    fn read_reply(&self, reply: &Reply) -> Reading {
        if let Some(why) = self.refusal(reply) {
            return Reading::Refused(why);
        }
        let Some(system) = reply.json().filter(|_| reply.status == StatusCode::OK) else {
            return Reading::Unclear(reply.words());
        };
        let reset = Reset::of(&system, self.connection.system);
        *self.reset.lock() = Some(reset);
        match system["PowerState"].as_str() {
            Some("Off") => Reading::State(ObservedState::Off, "PowerState is Off".to_owned()),
            Some("On") => Reading::State(ObservedState::On, "PowerState is On".to_owned()),
            _ => Reading::Unclear(format!("PowerState is {}", system["PowerState"])),
        }
    }

    /// What no repetition changes. A session may end early, so that its 401 says nothing of the password.
    fn refusal(&self, reply: &Reply) -> Option<String> {
        match reply.status {
            StatusCode::UNAUTHORIZED if self.session.is_token() => None,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Some(format!("the login was refused: {}", reply.words()))
            }
            StatusCode::NOT_FOUND => Some(format!(
                "there is nothing at {}: {}",
                self.connection.system,
                reply.words()
            )),
            status if status.is_redirection() => {
                let to = reply
                    .headers
                    .get("location")
                    .and_then(|l| l.to_str().ok())
                    .unwrap_or("somewhere else");
                Some(format!(
                    "{} redirects to {to}; name the system's own path in the method",
                    self.connection.system
                ))
            }
            _ => None,
        }
    }

    async fn reset(&self, until: Instant) -> Result<Reset, Answer> {
        let known = || self.reset.lock().clone();
        if let Some(reset) = known() {
            return Ok(reset);
        }
        // A system that does not say in time how it wants to be reset is asked as the schema has it.
        match (self.read(end_of_first_reading(until)).await, known()) {
            (Reading::Refused(why), _) => Err(Answer::Refused(why)),
            (_, Some(reset)) => Ok(reset),
            (_, None) => Ok(Reset::of(&Value::Null, self.connection.system)),
        }
    }

    /// Whether a refused `On` is worth asking again, after a pause.
    async fn may_ask_again(&self, kind: FencingKind, reply: &Reply, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        if kind != FencingKind::PowerOn || reply.status != StatusCode::CONFLICT || left <= ON_PAUSE {
            return false;
        }
        sleep(ON_PAUSE).await;
        !matches!(
            self.read(until).await,
            Reading::State(ObservedState::On, _) | Reading::Refused(_)
        )
    }
}

#[async_trait]
impl Device for System<'_> {
    async fn read(&self, until: Instant) -> Reading {
        match self.send(Method::GET, self.connection.system, None, until).await {
            Ok(reply) => self.read_reply(&reply),
            Err(why) => Reading::Unclear(why),
        }
    }

    /// A 400 or 409 may mean that it is so already, and a success means nothing: reading decides.
    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        let reset = match self.reset(until).await {
            Ok(reset) => reset,
            Err(answer) => return answer,
        };
        let Some(reset_type) = reset.kind(kind) else {
            return Answer::Refused(format!("driver redfish cannot do {kind}"));
        };
        let mut retries = 0;
        loop {
            let body = json!({ "ResetType": reset_type });
            let reply = match self.send(Method::POST, &reset.target, Some(body), until).await {
                Ok(reply) => reply,
                Err(why) => return Answer::Sent(format!("{reset_type}: {why}")),
            };
            if let Some(why) = self.refusal(&reply) {
                return Answer::Refused(why);
            }
            if retries >= ON_RETRIES || !self.may_ask_again(kind, &reply, until).await {
                return Answer::Sent(format!("{reset_type}: {}", reply.words()));
            }
            retries += 1;
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}
