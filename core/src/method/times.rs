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
    /// Seconds that a proof by this method has to settle before it counts: until what was accepted before it has landed. 0 for a method
    /// that reads back the far end.
    #[serde(skip_serializing_if = "is_zero")]
    pub settle_s: u32,
    /// Seconds for which the device may still carry out a command that was given up; `null`: what is known of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lingers_s: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(settle_s: &u32) -> bool {
    *settle_s == 0
}

impl Default for MethodTimes {
    fn default() -> Self {
        Self {
            attempt_timeout_s: 20,
            timeout_s: 60,
            retries: 2,
            pause_ms: 1000,
            settle_s: 0,
            lingers_s: None,
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
    range("settle_s", times.settle_s, 0, 600);
    if let Some(lingers_s) = times.lingers_s {
        range("lingers_s", lingers_s, 0, 3_600);
    }
}
