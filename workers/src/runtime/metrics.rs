//! What a worker counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringfence_bus::BusError;
use ringfence_core::Outcome;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The counters of one worker.
        #[derive(Debug, Default)]
        pub(crate) struct Metrics { $(pub $name: AtomicU64),+ }

        /// What a worker has counted since it started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct MetricsSnapshot { $($(#[$doc])* pub $name: u64),+ }

        impl Metrics {
            pub(crate) fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($name: self.$name.load(Relaxed)),+ }
            }
        }
    };
}

counters!(
    /// Messages without a valid signature; never acted upon.
    bad_signatures,
    /// Messages that are signed but not what was expected.
    unreadable,
    /// Claims that were refused; nothing was done.
    claims_refused,
    /// Claims that no engine answered; the task went back to the bus.
    claims_unanswered,
    /// Attempts that ended with the wanted state read back.
    confirmed,
    /// Attempts that ended with a definite no.
    refused,
    /// Attempts whose end is not known.
    unknown,
    /// Drivers that panicked.
    driver_panics,
    /// Drivers that did not stop when they were told to; nothing was reported for them.
    drivers_stuck,
    /// Results that could not be delivered.
    results_lost,
    /// Questions about devices that were answered.
    questions_answered,
    /// kdump messages from addresses of hosts.
    kdump_heard,
    /// kdump messages from addresses that no host has, or more than one; dropped.
    kdump_foreign,
    /// Datagrams that are no kdump messages; dropped.
    kdump_unreadable,
    /// Reports of kdump messages that no engine has taken.
    kdump_untold,
);

impl Metrics {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_outcome(&self, outcome: Outcome) {
        Self::count(match outcome {
            Outcome::Confirmed => &self.confirmed,
            Outcome::Refused => &self.refused,
            Outcome::Unknown => &self.unknown,
        });
    }

    pub(crate) fn count_bad_message(&self, error: &BusError) {
        match error {
            BusError::BadSignature { .. } => Self::count(&self.bad_signatures),
            _ => Self::count(&self.unreadable),
        }
    }
}
