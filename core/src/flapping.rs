//! Flapping: a host that is fenced again and again is in quarantine, and is taken back by a person alone.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{Problems, Timestamp};

/// Fences of a host that are remembered.
const REMEMBERED: usize = 32;

/// When a segment's host is in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantinePolicy {
    /// How often the host became FENCED, 2 to 32.
    pub fences: u32,
    /// Seconds within which it did, 60 to 2,592,000 (30 days).
    pub within_s: u32,
}

impl QuarantinePolicy {
    pub(crate) fn check(self, problems: &mut Problems) {
        let ranges = [
            ("fences", self.fences, 2, 32),
            ("within_s", self.within_s, 60, 2_592_000),
        ];
        for (field, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                problems.add(
                    format!("policy.quarantine.{field}"),
                    format!("is {value}; {min} to {max} is allowed"),
                );
            }
        }
    }
}

/// How often a host was fenced lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flapping {
    /// When it became FENCED, since a person last took it back out of a quarantine; the oldest first.
    pub fenced_at: Vec<Timestamp>,
    /// Since when it is in quarantine, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined_at: Option<Timestamp>,
}

impl Flapping {
    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How often it became FENCED within so many seconds.
    #[must_use]
    pub fn fences_within(&self, seconds: u32, now: Timestamp) -> u32 {
        let since = now - TimeDelta::seconds(i64::from(seconds));
        let lately = self.fenced_at.iter().filter(|at| **at > since).count();
        u32::try_from(lately).unwrap_or(u32::MAX)
    }

    /// It has become FENCED. `true` if its quarantine begins with that.
    pub(crate) fn fenced(&mut self, policy: Option<QuarantinePolicy>, now: Timestamp) -> bool {
        if self.fenced_at.len() >= REMEMBERED {
            self.fenced_at.remove(0);
        }
        self.fenced_at.push(now);
        let is_due = policy.is_some_and(|policy| self.fences_within(policy.within_s, now) >= policy.fences);
        let begins = is_due && self.quarantined_at.is_none();
        if begins {
            self.quarantined_at = Some(now);
        }
        begins
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        let moments = self.fenced_at.iter_mut().chain(&mut self.quarantined_at);
        moments.for_each(|at| *at = (*at).min(now));
    }

    /// A person takes it back. `true` if it was in quarantine.
    pub(crate) fn release(&mut self) -> bool {
        let was_there = self.quarantined_at.take().is_some();
        if was_there {
            self.fenced_at.clear();
        }
        was_there
    }
}
