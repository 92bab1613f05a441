//! Times in OpenStack's form: UTC, with or without a suffix that says so.

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Deserializer};

/// `2030-01-31T12:00:00.000000`, `2030-01-31T12:00:00Z`, or nothing.
pub(super) fn optional<'de, D: Deserializer<'de>>(json: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Option::<String>::deserialize(json)?;
    Ok(text.as_deref().and_then(parse))
}

fn parse(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.to_utc());
    }
    let naive = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    Some(naive.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_the_same_moment() {
        let at = parse("2030-01-31T12:00:00Z");
        assert!(at.is_some());
        assert_eq!(parse("2030-01-31T12:00:00.000000"), at);
        assert_eq!(parse("2030-01-31T13:00:00+01:00"), at);
        assert_eq!(parse("yesterday"), None);
    }
}
