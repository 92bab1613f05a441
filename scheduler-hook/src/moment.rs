//! A clock that only goes forward, and goes on while the machine sleeps: a read from before a sleep is old after it.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment, counted from the start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// The present moment; `None` where the system has no such clock.
    pub fn now() -> Option<Self> {
        let since_start = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
        Some(Self(since_start.into()))
    }

    /// The time since the moment.
    pub fn age(self) -> Option<Duration> {
        Some(Self::now()?.0.saturating_sub(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_grows_older() {
        let moment = Moment::now().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let age = moment.age().unwrap();
        assert!(
            age >= Duration::from_millis(20) && age < Duration::from_secs(20),
            "{age:?}"
        );
    }
}
