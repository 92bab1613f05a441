//! Moments in bodies and queries.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A moment, as RFC 3339 has it, with any offset.
pub(crate) fn read(text: &str) -> Result<DateTime<Utc>, String> {
    let read = DateTime::parse_from_rfc3339(text);
    read.map(|at| at.to_utc())
        .map_err(|_| format!("is {text:?}; a time such as 2026-01-31T12:00:00Z is allowed"))
}

/// One that has to be there.
pub(crate) fn required<'de, D: Deserializer<'de>>(from: D) -> Result<DateTime<Utc>, D::Error> {
    from.deserialize_str(Moment)
}

/// One that may be left out; the field needs `default`.
pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let read: Option<Read> = Option::deserialize(from)?;
    Ok(read.map(|Read(at)| at))
}

struct Read(DateTime<Utc>);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        required(from).map(Read)
    }
}

struct Moment;

impl Visitor<'_> for Moment {
    type Value = DateTime<Utc>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as 2026-01-31T12:00:00Z")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        read(text).map_err(E::custom)
    }
}
