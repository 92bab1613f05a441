//! What a monitor says, held against Masakari's own schema of it.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The most of a wrong value that is told back, in characters.
const MAX_SHOWN: usize = 512;
/// The longest name of a host, in characters.
const MAX_HOST_CHARS: usize = 255;
const TYPES: [&str; 3] = ["COMPUTE_HOST", "VM", "PROCESS"];
const KEYS: [&str; 4] = ["type", "hostname", "generated_time", "payload"];

/// What a monitor sends.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `Notification` reads")]
pub(crate) struct NotificationBody {
    notification: NotificationFields,
}

/// What has happened where.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `Notification` reads")]
pub(crate) struct NotificationFields {
    /// Only COMPUTE_HOST says something of a host.
    #[schema(
        rename = "type",
        pattern = "^(COMPUTE_HOST|VM|PROCESS)$",
        example = "COMPUTE_HOST"
    )]
    kind: String,
    /// The host's name, here or in its cloud.
    #[schema(min_length = 1, max_length = 255, pattern = "^[a-zA-Z0-9-._]*$")]
    hostname: String,
    /// When it happened; UTC where it names no zone.
    #[schema(example = "2026-11-22T00:48:14.401566")]
    generated_time: String,
    /// `event` (STOPPED or STARTED), `cluster_status` (ONLINE or OFFLINE), and other texts.
    #[schema(example = json!({"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"}))]
    payload: HashMap<String, String>,
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    HostStopped,
    HostStarted,
    /// A guest, or a process of a host.
    Other,
}

/// A notification.
#[derive(Clone, Debug)]
pub(super) struct Notification {
    pub kind: Kind,
    /// In Masakari's word.
    pub kind_word: String,
    pub hostname: String,
    pub generated_at: DateTime<Utc>,
    pub payload: Value,
}

impl Notification {
    /// Reads it; else why it is not one, as Masakari says it.
    pub fn read(given: &Value) -> Result<Self, String> {
        let notification = given
            .get("notification")
            .ok_or("'notification' is a required property")?;
        let fields = object("notification", notification)?;
        for key in KEYS {
            required("notification", notification, fields, key)?;
        }
        if let Some(extra) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let why = format!("Additional properties are not allowed ('{extra}' was unexpected)");
            return Err(wrong("notification", notification, &why));
        }
        let kind_word = one_of("type", &fields["type"], &TYPES)?;
        let payload = fields["payload"].clone();
        Ok(Self {
            kind: kind(&kind_word, &payload)?,
            kind_word,
            hostname: hostname(&fields["hostname"])?,
            generated_at: time(&fields["generated_time"])?,
            payload,
        })
    }
}

fn kind(word: &str, payload: &Value) -> Result<Kind, String> {
    let fields = object("payload", payload)?;
    required("payload", payload, fields, "event")?;
    if word != "COMPUTE_HOST" {
        return Ok(Kind::Other);
    }
    if let Some((key, value)) = fields.iter().find(|(_, value)| !value.is_string()) {
        let why = format!("{} is not of type 'string'", shown(value));
        return Err(wrong(key, value, &why));
    }
    if let Some(status) = fields.get("cluster_status") {
        one_of("cluster_status", status, &["ONLINE", "OFFLINE"])?;
    }
    let event = one_of("event", &fields["event"], &["STARTED", "STOPPED"])?;
    Ok(if event == "STOPPED" {
        Kind::HostStopped
    } else {
        Kind::HostStarted
    })
}

fn hostname(value: &Value) -> Result<String, String> {
    let name = text("hostname", value)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if name.is_empty() {
        return Err(wrong("hostname", value, "'' is too short"));
    }
    if name.chars().count() > MAX_HOST_CHARS {
        return Err(wrong("hostname", value, &format!("{} is too long", shown(value))));
    }
    if !name.chars().all(is_plain) {
        let why = format!("'{name}' does not match '^[a-zA-Z0-9-._]*$'");
        return Err(wrong("hostname", value, &why));
    }
    Ok(name.to_owned())
}

/// With a zone or, as the monitors write it, without: then it is UTC.
fn time(value: &Value) -> Result<DateTime<Utc>, String> {
    let text = text("generated_time", value)?;
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.to_utc());
    }
    let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    let read = forms
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    read.map(|at| at.and_utc())
        .ok_or_else(|| wrong("generated_time", value, &format!("'{text}' is not a 'date-time'")))
}

fn object<'a>(field: &str, value: &'a Value) -> Result<&'a Map<String, Value>, String> {
    let why = || wrong(field, value, &format!("{} is not of type 'object'", shown(value)));
    value.as_object().ok_or_else(why)
}

fn text<'a>(field: &str, value: &'a Value) -> Result<&'a str, String> {
    let why = || wrong(field, value, &format!("{} is not of type 'string'", shown(value)));
    value.as_str().ok_or_else(why)
}

fn required(field: &str, value: &Value, fields: &Map<String, Value>, key: &str) -> Result<(), String> {
    if fields.contains_key(key) {
        return Ok(());
    }
    Err(wrong(field, value, &format!("'{key}' is a required property")))
}

fn one_of(field: &str, value: &Value, words: &[&str]) -> Result<String, String> {
    if let Some(word) = value.as_str().filter(|word| words.contains(word)) {
        return Ok(word.to_owned());
    }
    let words: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    let given = value
        .as_str()
        .map_or_else(|| shown(value), |text| format!("'{}'", cut(text)));
    Err(wrong(
        field,
        value,
        &format!("{given} is not one of ({})", words.join(", ")),
    ))
}

fn wrong(field: &str, value: &Value, why: &str) -> String {
    let value = value.as_str().map_or_else(|| shown(value), cut);
    format!(
        "Invalid input for field/attribute {field}. Value: {value}. {}",
        cut(why)
    )
}

fn shown(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stopped() -> Value {
        json!({ "notification": {
            "type": "COMPUTE_HOST", "hostname": "compute1", "generated_time": "2026-11-22T00:48:14.401566",
            "payload": { "event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL" },
        }})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut given = stopped();
        given["notification"][key] = value;
        given
    }

    fn refusal(given: &Value) -> String {
        Notification::read(given).unwrap_err()
    }

    #[test]
    fn a_notification_of_a_host_monitor_is_read() {
        let read = Notification::read(&stopped()).unwrap();
        assert_eq!(
            (read.kind, read.hostname.as_str()),
            (Kind::HostStopped, "compute1")
        );
        assert_eq!(read.generated_at.to_rfc3339(), "2026-11-22T00:48:14.401566+00:00");
        let zoned = with("generated_time", json!("2026-11-22T01:48:14+01:00"));
        assert_eq!(
            Notification::read(&zoned).unwrap().generated_at.to_rfc3339(),
            "2026-11-22T00:48:14+00:00"
        );
        let started = with("payload", json!({ "event": "STARTED" }));
        assert_eq!(Notification::read(&started).unwrap().kind, Kind::HostStarted);
        let mut guest = with("type", json!("VM"));
        guest["notification"]["payload"] =
            json!({ "event": "LIFECYCLE", "instance_uuid": "x", "vir_domain_event": "STOPPED_FAILED" });
        assert_eq!(Notification::read(&guest).unwrap().kind, Kind::Other);
    }

    #[test]
    fn an_invalid_notification_is_refused_with_masakaris_message() {
        assert_eq!(refusal(&json!({})), "'notification' is a required property");
        assert_eq!(
            refusal(&with("type", json!("HOST"))),
            "Invalid input for field/attribute type. Value: HOST. 'HOST' is not one of ('COMPUTE_HOST', 'VM', 'PROCESS')"
        );
        assert_eq!(
            refusal(&with("generated_time", json!("yesterday"))),
            "Invalid input for field/attribute generated_time. Value: yesterday. 'yesterday' is not a 'date-time'"
        );
        for (given, says) in [
            (json!({ "notification": 7 }), "7 is not of type 'object'"),
            (json!({ "notification": {} }), "'type' is a required property"),
            (
                with("extra", json!(1)),
                "Additional properties are not allowed ('extra' was unexpected)",
            ),
            (with("hostname", json!("")), "'' is too short"),
            (
                with("hostname", json!("a b")),
                "'a b' does not match '^[a-zA-Z0-9-._]*$'",
            ),
            (with("hostname", json!(null)), "null is not of type 'string'"),
            (with("payload", json!([])), "[] is not of type 'object'"),
            (with("payload", json!({})), "'event' is a required property"),
            (
                with("payload", json!({ "event": "GONE" })),
                "'GONE' is not one of ('STARTED', 'STOPPED')",
            ),
            (
                with("payload", json!({ "event": "STOPPED", "cluster_status": "?" })),
                "'?' is not one of ('ONLINE', 'OFFLINE')",
            ),
            (
                with("payload", json!({ "event": "STOPPED", "more": 1 })),
                "1 is not of type 'string'",
            ),
        ] {
            assert!(refusal(&given).ends_with(says), "{}", refusal(&given));
        }
        let long = with("type", json!("x".repeat(100_000)));
        assert!(refusal(&long).len() < 2_000);
    }
}
