//! `POST /alertmanager`: what an Alertmanager sends to its receivers, as conditions of the hosts that its alerts are about.

use std::collections::{BTreeMap, BTreeSet};

use actix_web::{HttpResponse, web};
use futures_util::{StreamExt, stream};
use ringfence_core::{
    ConditionStatus, MAX_CONDITION_REASON_CHARS, ReportedCondition, validate_condition_name,
};
use ringfence_engine::{Context, EngineError, check_source};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::body::LongBody;
use crate::call::Call;
use crate::error::ErrorList;
use crate::role::Role;

/// The largest body, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// The version of the form of the body.
const VERSION: &str = "4";
const SOURCE: &str = "alertmanager";
const LABEL: &str = "instance";
/// Hosts that are written side by side.
const AT_ONCE: usize = 8;
/// Alerts that an answer names as ignored.
const MOST_NAMED: usize = 100;

/// Which alerts are about which hosts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlertmanagerQuery {
    /// The label that names the host, by its name or id; `instance` if absent. A port at its end is left out.
    #[param(min_length = 1, max_length = 255)]
    label: Option<String>,
    /// The name of the source, up to 255 characters; `alertmanager` if absent.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    source: Option<String>,
}

/// What an Alertmanager sends: version 4 of its form. What is not named here is not read.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AlertmanagerBody {
    /// The version of the form
    #[schema(pattern = "^4$", example = "4")]
    version: String,
    /// All alerts of a group.
    alerts: Vec<Alert>,
}

/// An alert.
#[derive(Debug, Deserialize, ToSchema)]
struct Alert {
    /// firing or resolved
    #[schema(value_type = String, pattern = "^(firing|resolved)$", example = "firing")]
    status: AlertStatus,
    /// `alertname` is the name of the condition.
    #[schema(example = json!({ "alertname": "DiskFails", "instance": "node-1:9100" }))]
    labels: BTreeMap<String, String>,
    /// `summary`, or else `description`, is the reason of the condition.
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AlertStatus {
    Firing,
    Resolved,
}

/// What became of the alerts.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Alerted {
    /// Hosts whose conditions were taken down.
    reported: usize,
    /// Alerts that say nothing of a host; at most 100 are named.
    ignored: Vec<Ignored>,
}

/// An alert that says nothing of a host.
#[derive(Debug, Serialize, ToSchema)]
struct Ignored {
    /// Its name, if it has one.
    alert: Option<String>,
    /// The host that it names, if it does.
    host: Option<String>,
    /// Why it is ignored.
    why: String,
}

/// What the alerts of one notification say of one host.
#[derive(Debug, Default)]
struct Said {
    firing: BTreeMap<String, String>,
    resolved: BTreeSet<String>,
}

/// Takes down the alerts of an Alertmanager as conditions of hosts.
///
/// An alert that fires is a condition of its name with the status True; one that is resolved is no more. Conditions of other alerts stay. Where several alerts of a
/// name are about one host, the condition is over when none of those in the notification fires. Alerts of hosts that are not known are ignored, and the answer says which.
#[utoipa::path(post, path = "/alertmanager", operation_id = "report_alerts", tag = "hosts", params(AlertmanagerQuery), request_body = AlertmanagerBody,
    responses((status = 200, body = Alerted), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn report(
    call: Call,
    query: web::Query<AlertmanagerQuery>,
    body: LongBody<MAX_BODY_BYTES>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Service)?;
    let AlertmanagerBody { version, alerts } = body.parse()?;
    if version != VERSION {
        let what = format!("is {version:?}; {VERSION:?} is allowed");
        return Err(ApiError::bad("version", what));
    }
    let source = query.source.as_deref().unwrap_or(SOURCE);
    check_source(source)?;
    let (by_host, mut ignored) = sort(alerts, query.label.as_deref().unwrap_or(LABEL));
    let mut reported = 0;
    let told = stream::iter(by_host).map(|(host, said)| tell(&call, source, host, said, &by));
    let mut told = told.buffer_unordered(AT_ONCE);
    while let Some(done) = told.next().await {
        match done? {
            None => reported += 1,
            Some(unknown) => ignored.push(unknown),
        }
    }
    if let Some(first) = ignored.first() {
        tracing::warn!(
            alerts = ignored.len(),
            alert = first.alert,
            host = first.host,
            why = first.why,
            "alerts of an Alertmanager were ignored"
        );
    }
    ignored.truncate(MOST_NAMED);
    Ok(HttpResponse::Ok().json(Alerted { reported, ignored }))
}

fn sort(alerts: Vec<Alert>, label: &str) -> (BTreeMap<String, Said>, Vec<Ignored>) {
    let mut by_host = BTreeMap::<String, Said>::new();
    let mut ignored = Vec::new();
    for mut alert in alerts {
        let host = alert.labels.get(label).map(|text| without_port(text).to_owned());
        let name = alert.labels.remove("alertname");
        let why = match (&host, &name) {
            (None, _) => format!("it has no label {label:?}"),
            (_, None) => "it has no label \"alertname\"".to_owned(),
            (Some(host), Some(name)) => match validate_condition_name("alertname", name) {
                Err(problem) => problem.to_string(),
                Ok(()) => {
                    by_host.entry(host.clone()).or_default().take(name, &alert);
                    continue;
                }
            },
        };
        ignored.push(Ignored {
            alert: name,
            host,
            why,
        });
    }
    (by_host, ignored)
}

/// The text before `:` and a number at its end.
fn without_port(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    }
}

impl Said {
    fn take(&mut self, name: &str, alert: &Alert) {
        match alert.status {
            AlertStatus::Firing => {
                let words = alert.annotations.get("summary");
                let words = words.or_else(|| alert.annotations.get("description"));
                self.firing
                    .entry(name.to_owned())
                    .or_insert_with(|| reason(words.map_or("", String::as_str)));
            }
            AlertStatus::Resolved => {
                self.resolved.insert(name.to_owned());
            }
        }
    }
}

/// On one line, and no longer than a reason may be.
fn reason(words: &str) -> String {
    let words = words.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(MAX_CONDITION_REASON_CHARS).collect()
}

/// Takes down what is said of one host. What is ignored if there is no such host.
async fn tell(
    call: &Call,
    source: &str,
    host: String,
    said: Said,
    by: &Context,
) -> Result<Option<Ignored>, ApiError> {
    let over = said
        .resolved
        .into_iter()
        .filter(|name| !said.firing.contains_key(name));
    let over: Vec<String> = over.collect();
    let conditions = said.firing.into_iter().map(|(name, reason)| ReportedCondition {
        name,
        status: ConditionStatus::True,
        reason,
    });
    let conditions = (conditions.collect(), Some(over));
    match call.engine.report_conditions(&host, source, conditions, by).await {
        Ok(_) => Ok(None),
        // Said again, it would be refused again.
        Err(error @ (EngineError::NotFound { .. } | EngineError::Refused(_) | EngineError::Invalid(_))) => {
            Ok(Some(Ignored {
                alert: None,
                host: Some(host),
                why: error.to_string(),
            }))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_left_out_and_nothing_else_is() {
        for (text, host) in [
            ("node-1:9100", "node-1"),
            ("node-1", "node-1"),
            ("a:b", "a:b"),
            ("a:", "a:"),
            ("[fd00::1]:9100", "[fd00::1]"),
        ] {
            assert_eq!(without_port(text), host);
        }
    }
}
