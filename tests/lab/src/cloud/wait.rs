//! Waiting for what the services do in their own time.

use std::time::{Duration, Instant};

use crate::error::LabError;

/// A question costs the services tens of milliseconds of a core, which they need for what is waited for.
pub(crate) const POLL: Duration = Duration::from_millis(250);

/// Looks again and again until `look` finds something. What it has seen instead is told if that takes too long.
pub(crate) fn wait_for<T>(
    what: impl Fn() -> String,
    limit: Duration,
    mut look: impl FnMut() -> Result<Seen<T>, LabError>,
) -> Result<T, LabError> {
    let begun = Instant::now();
    loop {
        let seen = match look()? {
            Seen::Enough(found) => return Ok(found),
            Seen::NotYet(seen) => seen,
        };
        if begun.elapsed() > limit {
            return Err(LabError::NotSeen {
                what: what(),
                seconds: limit.as_secs(),
                seen,
            });
        }
        std::thread::sleep(POLL);
    }
}

/// What a look has shown.
pub(crate) enum Seen<T> {
    /// What was waited for.
    Enough(T),
    /// Something else.
    NotYet(String),
}
