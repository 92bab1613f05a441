//! Arguments that several commands take.

use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use clap::Args;
use ringfence_core::Timestamp;
use serde_json::{Map, Value};

use crate::error::CliError;

/// The part of a collection to list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// How many to list at most
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// The order: name, created_at or updated_at, with :asc or :desc
    #[arg(long, value_name = "KEY:DIRECTION")]
    pub sort: Option<String>,
}

/// `KEY=VALUE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The text before the first `=`.
    pub key: String,
    /// The text after it.
    pub value: String,
}

/// Reads `KEY=VALUE`. The error does not repeat the value, which may be a secret in the wrong place.
pub fn pair(text: &str) -> Result<Pair, CliError> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok(Pair {
            key: key.trim().to_owned(),
            value: value.to_owned(),
        }),
        Some(_) | None => Err(CliError::Usage(
            "write a parameter or secret as KEY=VALUE".to_owned(),
        )),
    }
}

/// Reads `30s`, `5m`, `2h`, or a number of seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let bad = || "a number with s, m or h behind it is allowed, as in 30s, up to 24h".to_owned();
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let seconds = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(bad)?;
    if (1..=86_400).contains(&seconds) {
        Ok(Duration::from_secs(seconds))
    } else {
        Err(bad())
    }
}

/// Reads a time, or how long ago it was: `2026-01-31T12:00:00Z`, or `90s`, `30m`, `2h`, `7d`.
pub fn moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.to_utc());
    }
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'd')) => (&text[..at], 86_400),
        _ => ("", 0),
    };
    let ago = number
        .parse::<u32>()
        .ok()
        .and_then(|number| TimeDelta::try_seconds(i64::from(number) * unit));
    ago.and_then(|ago| now.checked_sub_signed(ago)).ok_or_else(|| {
        "a time such as 2026-01-31T12:00:00Z is allowed, or how long ago it was with s, m, h or d behind it, as in 2h"
            .to_owned()
    })
}

/// Sets a key of an object if there is a value.
pub fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// The object at `key`, which is added if it is missing.
pub fn object_at<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, CliError> {
    let value = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
    value
        .as_object_mut()
        .ok_or_else(|| CliError::Usage(format!("{key} is no object")))
}

/// Reads `90d`, `2h` or `5m`.
pub fn duration(text: &str) -> Result<TimeDelta, String> {
    let bad = || "a whole number with d, h or m behind it is allowed, as in 90d".to_owned();
    let split = text.len().saturating_sub(1);
    let (Some(number), Some(unit)) = (text.get(..split), text.get(split..)) else {
        return Err(bad());
    };
    let number = number
        .parse::<u32>()
        .ok()
        .filter(|number| (1..=100_000).contains(number))
        .ok_or_else(bad)?;
    match unit {
        "d" => Ok(TimeDelta::days(number.into())),
        "h" => Ok(TimeDelta::hours(number.into())),
        "m" => Ok(TimeDelta::minutes(number.into())),
        _ => Err(bad()),
    }
}

/// A number of seconds, or `none`.
pub fn seconds_or_none(text: &str) -> Result<Value, String> {
    match text {
        "none" => Ok(Value::Null),
        number => number
            .parse::<u32>()
            .map(Value::from)
            .map_err(|_| "a number of seconds or none is allowed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit_or_are_seconds() {
        assert_eq!(span("90"), Ok(Duration::from_secs(90)));
        assert_eq!(span("5m"), Ok(Duration::from_secs(300)));
        for bad in ["", "s", "0", "25h", "-1s", "5 m", "é"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90d"), Ok(TimeDelta::days(90)));
        for bad in ["90", "d", "", "-1d", "0h", "1é", "9999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_how_long_ago_it_was() {
        let at = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().to_utc();
        let now = at("2026-01-31T12:00:00Z");
        for (text, expected) in [
            ("2h", "2026-01-31T10:00:00Z"),
            ("90s", "2026-01-31T11:58:30Z"),
            ("31d", "2025-12-31T12:00:00Z"),
            ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(moment(text, now), Ok(at(expected)), "{text}");
        }
        for bad in ["", "d", "2", "-2h", "yesterday", "4294967295d", "2026-01-31", "é"] {
            assert!(moment(bad, now).unwrap_err().contains("2h"), "{bad}");
        }
    }

    #[test]
    fn a_pair_may_have_an_equals_sign_in_its_value() {
        assert_eq!(
            pair("options=a=b").unwrap(),
            Pair {
                key: "options".to_owned(),
                value: "a=b".to_owned()
            }
        );
        assert!(!pair("hush").unwrap_err().to_string().contains("hush"));
    }
}
