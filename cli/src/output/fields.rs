//! The details of an event or of a line of the audit trail, as text.

use serde_json::{Map, Value};

/// `key=value` for each field of an object that has a value, except those that other columns show.
#[must_use]
pub fn fields(data: &Value, told_elsewhere: &[&str]) -> String {
    let Value::Object(fields) = data else {
        return String::new();
    };
    let told = |key: &str, value: &Value| !value.is_null() && !told_elsewhere.contains(&key);
    let fields = fields.iter().filter(|(key, value)| told(key, value));
    fields
        .map(|(key, value)| format!("{key}={}", shown(value)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A proof is shown by its kind and source, a change by its field and values, any other value as it is.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => match (fields.get("kind"), fields.get("source")) {
            (Some(Value::String(kind)), Some(Value::String(source))) => format!("{kind} by {source}"),
            _ => change(fields).unwrap_or_else(|| value.to_string()),
        },
        other => other.to_string(),
    }
}

fn change(fields: &Map<String, Value>) -> Option<String> {
    let (from, to) = (fields.get("from")?, fields.get("to")?);
    Some(format!("{}: {from} -> {to}", fields.get("field")?.as_str()?))
}
