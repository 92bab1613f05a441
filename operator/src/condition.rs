//! Conditions, as Kubernetes' own objects have them.

use ringfence_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::refusal::Why;
use crate::text::{MESSAGE, cut};

/// One condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: String,
    pub observed_generation: i64,
}

/// The conditions that an object is to have.
pub(crate) struct Conditions<'a> {
    known: &'a [Condition],
    object_generation: i64,
    now: Timestamp,
    wanted: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    /// `known` are those that the object has: only the time of a condition that stays is taken from them.
    pub fn new(known: &'a [Condition], object_generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            known,
            object_generation: object_generation.unwrap_or_default(),
            now,
            wanted: Vec::new(),
        }
    }

    pub fn yes(&mut self, kind: &str, why: &Why) {
        self.set(kind, "True", why);
    }

    pub fn no(&mut self, kind: &str, why: &Why) {
        self.set(kind, "False", why);
    }

    pub fn unknown(&mut self, kind: &str, why: &Why) {
        self.set(kind, "Unknown", why);
    }

    pub fn done(self) -> Vec<Condition> {
        self.wanted
    }

    fn set(&mut self, kind: &str, status: &str, why: &Why) {
        let known = self.known.iter().find(|known| known.kind == kind);
        let since = known.filter(|known| known.status == status && !known.last_transition_time.is_empty());
        self.wanted.push(Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: why.reason.clone(),
            message: cut(&why.message, MESSAGE),
            last_transition_time: match since {
                Some(known) => known.last_transition_time.clone(),
                None => self.now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            },
            observed_generation: self.object_generation,
        });
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::*;

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_change() {
        let begun = DateTime::UNIX_EPOCH;
        let told = |known: &[Condition], status: &str, minutes: i64| {
            let mut conditions = Conditions::new(known, Some(1), begun + TimeDelta::minutes(minutes));
            let why = Why::new("Because", "so");
            match status {
                "True" => conditions.yes("Fenced", &why),
                _ => conditions.no("Fenced", &why),
            }
            conditions.done()
        };
        let first = told(&[], "False", 0);
        let second = told(&first, "False", 1);
        let third = told(&second, "True", 2);
        let at = |conditions: &[Condition]| conditions[0].last_transition_time.clone();
        assert_eq!(
            [at(&first), at(&second), at(&third)],
            [
                "1970-01-01T00:00:00Z",
                "1970-01-01T00:00:00Z",
                "1970-01-01T00:02:00Z"
            ]
        );
    }
}
