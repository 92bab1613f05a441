//! How long and how often.

use serde::{Deserialize, Serialize};

use crate::Problems;

/// How long and how often a method may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MethodTimes {
    /// Seconds that one attempt may take.
    pub attempt_timeout_s: u32,
    /// Seconds that all attempts of one task with this method may take together; no retry begins once 70 % are used
    /// (Pacemaker's rule).
    pub timeout_s: u32,
    /// Retries after the first attempt.
    pub retries: u32,
    /// Milliseconds between two attempts.
    pub pause_ms: u32,
}

impl Default for MethodTimes {
    fn default() -> Self {
        Self {
            attempt_timeout_s: 20,
            timeout_s: 60,
            retries: 2,
            pause_ms: 1000,
        }
    }
}

pub(super) fn check_times(times: MethodTimes, problems: &mut Problems) {
    let mut range = |field: &str, value: u32, min: u32, max: u32| {
        if !(min..=max).contains(&value) {
            problems.add(
                format!("times.{field}"),
                format!("is {value}; {min} to {max} is allowed"),
            );
        }
    };
    range("attempt_timeout_s", times.attempt_timeout_s, 1, 300);
    range("timeout_s", times.timeout_s, times.attempt_timeout_s, 900);
    range("retries", times.retries, 0, 10);
    range("pause_ms", times.pause_ms, 0, 60_000);
}
