//! What follows a try to deliver an event.

use chrono::TimeDelta;

use crate::Timestamp;

/// The pause after the first try that failed; it doubles with each further one.
const FIRST_PAUSE_MS: u64 = 5_000;
/// No pause is longer, not even one that the receiver asks for.
const LONGEST_PAUSE_MS: u64 = 3_600_000;
/// An event is tried for so long.
pub const TRIED_FOR: TimeDelta = TimeDelta::hours(24);

/// What a try came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The receiver has it.
    Delivered,
    /// The receiver wants nothing any more.
    Gone,
    /// It did not work.
    Failed {
        /// Seconds that the receiver wants to be left alone.
        retry_after_s: Option<u32>,
    },
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTry {
    /// Nothing: it was delivered.
    Done,
    /// Try again then.
    At(Timestamp),
    /// Disable the subscription: the receiver said so.
    DisableGone,
    /// Disable the subscription: it did not work for a day.
    DisableFailing,
}

/// Decides. `tries` counts this one; `jitter` is at random between 0 and 65535 and keeps receivers from being called by all at once.
#[must_use]
pub fn after_try(
    tried: Tried,
    tries: u32,
    first_tried_at: Timestamp,
    now: Timestamp,
    jitter: u16,
) -> NextTry {
    let retry_after_s = match tried {
        Tried::Delivered => return NextTry::Done,
        Tried::Gone => return NextTry::DisableGone,
        Tried::Failed { retry_after_s } => retry_after_s,
    };
    let last_try_at = first_tried_at + TRIED_FOR;
    if now >= last_try_at {
        return NextTry::DisableFailing;
    }
    let asked_ms = u64::from(retry_after_s.unwrap_or(0)) * 1_000;
    let pause_ms = pause_ms(tries, jitter).max(asked_ms).min(LONGEST_PAUSE_MS);
    let pause = TimeDelta::milliseconds(i64::try_from(pause_ms).unwrap_or(i64::MAX));
    NextTry::At((now + pause).min(last_try_at))
}

/// Between half of the full pause and all of it.
fn pause_ms(tries: u32, jitter: u16) -> u64 {
    let doubled = FIRST_PAUSE_MS << tries.saturating_sub(1).min(16);
    let half = doubled.min(LONGEST_PAUSE_MS) / 2;
    half + half * u64::from(jitter) / u64::from(u16::MAX)
}
