//! The driver `prometheus`: an expression that returns nothing where a fence may begin.
//!
//! An expression also returns nothing where what it reads is gone: a server that was started anew, a target that is not scraped any more. The
//! second expression says that it is there.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use ringfence_backends::http::{self, Reply, Request};
use ringfence_core::{Answer, Declaration, FrozenMethod, Parameter, Question, Resource, Secret, value_of};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::Instant;

use super::{Asks, Others};
use crate::drivers::tls::{self, ALLOWED_URL, CA_FILE, INSECURE, TOKEN, is_plain, parse};
use crate::drivers::{Entry, password, required};
use crate::text::cut;
use crate::{Secrets, WorkerError};

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "prometheus",
        about: "an expression in PromQL that returns nothing where a fence may begin",
        resources: &[Resource::Query],
        parameters: &[
            Parameter::required(
                "url",
                "the URL of a Prometheus, or of what answers as one does: /api/v1/query is appended",
            )
            .says_where()
            .allowing(ALLOWED_URL, is_plain),
            Parameter::required("query", "the expression; what it returns holds a fence"),
            Parameter::optional(
                "present",
                "an expression that returns something as long as what query reads is there; without that it is unknown whether a fence may begin",
            ),
            Parameter::optional(
                "username",
                "the user of basic authentication; needs the secret password",
            ),
            CA_FILE,
            INSECURE,
        ],
        secrets: &[
            TOKEN,
            Secret {
                name: "password",
                is_required: false,
            },
        ],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |_| Arc::new(Asks(Prometheus)),
};

struct Prometheus;

#[async_trait]
impl Others for Prometheus {
    async fn ask(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        _: &Question,
        until: Instant,
    ) -> Result<Answer, WorkerError> {
        if let Some(expression) = value_of(&method.parameters, "present")
            && evaluate(method, secrets, expression, until).await?.is_empty()
        {
            return Err(WorkerError::unclear(
                "present returns nothing: what query reads is not there",
            ));
        }
        let series = evaluate(method, secrets, required(method, "query")?, until).await?;
        judge(&series)
    }
}

fn judge(series: &[Series]) -> Result<Answer, WorkerError> {
    let Some(first) = series.first() else {
        return Ok(Answer {
            is_allowed: true,
            reason: "its expression returns nothing".to_owned(),
        });
    };
    if let Some(odd) = series.iter().find(|series| series.value.1 == "NaN") {
        return Err(WorkerError::unclear(format!(
            "the expression returns NaN for {}",
            odd.labels()
        )));
    }
    let returned = match series.len() {
        1 => "1 series".to_owned(),
        number => format!("{number} series, the first of them"),
    };
    Ok(Answer {
        is_allowed: false,
        reason: format!(
            "its expression returns {returned} {} {}",
            first.labels(),
            first.value.1
        ),
    })
}

/// One element of an instant vector.
#[derive(Debug, Deserialize)]
struct Series {
    metric: Map<String, Value>,
    /// Seconds since 1970, and the value as text.
    value: (f64, String),
}

impl Series {
    fn labels(&self) -> String {
        let name = self.metric.get("__name__").and_then(Value::as_str);
        let labels = self.metric.iter().filter(|(name, _)| *name != "__name__");
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}{{{}}}", name.unwrap_or_default(), labels.join(","))
    }
}

#[derive(Debug, Deserialize)]
struct Printed {
    status: String,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
    /// Of VictoriaMetrics, which does not warn.
    #[serde(default, rename = "isPartial")]
    is_partial: bool,
}

#[derive(Debug, Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: Value,
}

/// What an expression returns now.
async fn evaluate(
    method: &FrozenMethod,
    secrets: &Secrets,
    expression: &str,
    until: Instant,
) -> Result<Vec<Series>, WorkerError> {
    let mut url = parse(required(method, "url")?)?;
    let left = until.saturating_duration_since(Instant::now());
    let timeout = format!("{}ms", left.max(Duration::from_millis(1)).as_millis());
    url.path_segments_mut()
        .map_err(|()| WorkerError::refused("the url cannot have a path"))?
        .pop_if_empty()
        .extend(["api", "v1", "query"]);
    url.query_pairs_mut()
        .append_pair("query", expression)
        .append_pair("timeout", &timeout);
    let request = authenticated(Request::new(Method::GET, url), method, secrets)?;
    let reply = http::send(&tls::client(method)?, request, until)
        .await
        .map_err(WorkerError::unclear)?;
    read(&reply)
}

fn authenticated(request: Request, method: &FrozenMethod, secrets: &Secrets) -> Result<Request, WorkerError> {
    if let Some(username) = value_of(&method.parameters, "username") {
        return Ok(request.basic(username, password(method, secrets)?));
    }
    tls::with_token(request, secrets)
}

fn read(reply: &Reply) -> Result<Vec<Series>, WorkerError> {
    let printed = reply
        .json()
        .and_then(|body| serde_json::from_value::<Printed>(body).ok());
    let Some(printed) = printed else {
        return Err(not_prometheus(reply));
    };
    if printed.status != "success" || !reply.status.is_success() {
        let said = format!("HTTP {}: {}", reply.status.as_u16(), printed.error);
        // The expression itself is wrong; other errors may pass.
        return Err(match reply.status.as_u16() {
            400 => WorkerError::refused(said),
            _ => WorkerError::unclear(said),
        });
    }
    // What answers for several servers leaves out those that do not answer, and says so.
    if let Some(warning) = printed.warnings.first() {
        return Err(WorkerError::unclear(format!("it warns: {warning}")));
    }
    if printed.is_partial {
        return Err(WorkerError::unclear(
            "its answer is partial: a storage did not answer",
        ));
    }
    let data = printed.data.ok_or_else(|| not_prometheus(reply))?;
    if data.kind != "vector" {
        return Err(WorkerError::refused(format!(
            "the expression returns a {}; one that returns an instant vector is allowed, such as a comparison of one",
            cut(&data.kind)
        )));
    }
    serde_json::from_value(data.result).map_err(|_| not_prometheus(reply))
}

fn not_prometheus(reply: &Reply) -> WorkerError {
    let said = cut(&reply.words());
    let said: String = said.chars().take(200).collect();
    match reply.status.as_u16() {
        401 | 403 => WorkerError::refused(said),
        _ => WorkerError::unclear(format!("it does not answer as a Prometheus does: {said}")),
    }
}
