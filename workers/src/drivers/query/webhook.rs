//! The driver `webhook`: a service of the operator's own is called, and says whether a fence may begin.
//!
//! The call is a CloudEvent, signed as those to subscribers are (Standard Webhooks, version 1).

use std::sync::Arc;

use async_trait::async_trait;
use chrono::SecondsFormat;
use reqwest::Method;
use reqwest::header::HeaderValue;
use ringfence_backends::http::{self, Reply, Request};
use ringfence_bus::WebhookSecret;
use ringfence_core::{Answer, Declaration, FrozenMethod, Parameter, Question, Resource, Secret};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Asks, Others};
use crate::driver::Clock;
use crate::drivers::tls::{self, ALLOWED_URL, CA_FILE, INSECURE, is_plain, parse};
use crate::drivers::{Entry, required};
use crate::text::cut;
use crate::{Secrets, WorkerError};

const SECRET: &str = "secret";
const ALLOWED_ANSWER: &str = r#"{"verdict": "allow", "hold" or "unknown", "reason": "..."} is allowed"#;

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "webhook",
        about: "a service of your own that is called and says whether a fence may begin",
        resources: &[Resource::Query],
        parameters: &[
            Parameter::required("url", "what is called, by POST with a CloudEvent")
                .says_where()
                .allowing(ALLOWED_URL, is_plain),
            CA_FILE,
            INSECURE,
        ],
        secrets: &[Secret {
            name: SECRET,
            is_required: true,
        }],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |settings| {
        Arc::new(Asks(Webhook {
            clock: Arc::clone(&settings.clock),
        }))
    },
};

struct Webhook {
    clock: Clock,
}

#[async_trait]
impl Others for Webhook {
    async fn ask(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        question: &Question,
        until: Instant,
    ) -> Result<Answer, WorkerError> {
        let request = self.call(method, secrets, question, until)?;
        let reply = http::send(&tls::client(method)?, request, until)
            .await
            .map_err(WorkerError::unclear)?;
        read(&reply)
    }
}

impl Webhook {
    fn call(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        question: &Question,
        until: Instant,
    ) -> Result<Request, WorkerError> {
        let secret = secrets
            .get(SECRET)
            .ok_or_else(|| WorkerError::refused(format!("method {} has no secret {SECRET}", method.name)))?;
        let secret = WebhookSecret::parse(secret.expose())
            .map_err(|why| WorkerError::refused(format!("the secret {SECRET} {why}")))?;
        let url = parse(required(method, "url")?)?;
        let (id, now) = (Uuid::new_v4().to_string(), (self.clock)());
        let left = until.saturating_duration_since(Instant::now());
        let body = json!({
            "specversion": "1.0",
            "id": id,
            "source": "ringfence",
            "type": "ringfence.fence.asked",
            "time": now.to_rfc3339_opts(SecondsFormat::Millis, true),
            "datacontenttype": "application/json",
            "subject": question.host,
            "partitionkey": question.host_id,
            "data": { "query": method.name, "question": question, "answer_within_ms": left.as_millis() },
        });
        let body = body.to_string().into_bytes();
        let unsigned = || WorkerError::refused("the call cannot be signed");
        let signature = secret.sign(&id, now.timestamp(), &body).ok_or_else(unsigned)?;
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| unsigned());
        Ok(Request::new(Method::POST, url)
            .header("webhook-id", header(&id)?)
            .header("webhook-timestamp", header(&now.timestamp().to_string())?)
            .header("webhook-signature", header(&signature)?)
            .bytes(
                HeaderValue::from_static("application/cloudevents+json; charset=utf-8"),
                body,
            ))
    }
}

#[derive(Debug, Deserialize)]
struct Said {
    verdict: String,
    #[serde(default)]
    reason: String,
}

fn read(reply: &Reply) -> Result<Answer, WorkerError> {
    if reply.status.is_redirection() {
        let status = reply.status.as_u16();
        return Err(WorkerError::unclear(format!(
            "it answers HTTP {status}; redirects are not followed"
        )));
    }
    let short = || -> String { cut(&reply.words()).chars().take(200).collect() };
    if !reply.status.is_success() {
        return Err(WorkerError::unclear(format!("it answers {}", short())));
    }
    let said = reply
        .json()
        .and_then(|body| serde_json::from_value::<Said>(body).ok());
    let Some(Said { verdict, reason }) = said else {
        return Err(WorkerError::unclear(format!(
            "it answers {}; {ALLOWED_ANSWER}",
            short()
        )));
    };
    let reason = match cut(&reason) {
        none if none.is_empty() => "no reason is told".to_owned(),
        reason => reason,
    };
    let answer = |is_allowed| {
        Ok(Answer {
            is_allowed,
            reason: reason.clone(),
        })
    };
    match verdict.as_str() {
        "allow" => answer(true),
        "hold" => answer(false),
        "unknown" => Err(WorkerError::unclear(format!("it does not know: {reason}"))),
        other => Err(WorkerError::unclear(format!(
            "its verdict is {:?}; {ALLOWED_ANSWER}",
            cut(other)
        ))),
    }
}
