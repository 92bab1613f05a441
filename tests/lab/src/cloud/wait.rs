//! Waiting for a state of the services.

use std::time::{Duration, Instant};

use crate::error::LabError;

/// Time between two looks: each costs the services tens of milliseconds of a core.
pub(crate) const POLL: Duration = Duration::from_millis(250);

/// Looks again and again until `look` finds something. A timeout's error has what was seen last.
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

/// The result of one look.
pub(crate) enum Seen<T> {
    /// The state that was waited for.
    Enough(T),
    /// Another state.
    NotYet(String),
}
