//! How far those lag behind who are told of events, and the removal of what is old.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringfence_core::Timestamp;
use ringfence_db::{Kept, SubscriptionState, Survey};

use super::moved::seconds;
use super::{Words, register};

/// With no labels; a family, because it can be left out while the number is not known.
type Seconds<const N: usize> = Family<Words<N>, Gauge<f64, AtomicU64>>;

#[derive(Default)]
pub(crate) struct Behind {
    subscriptions: Family<Words<1>, Gauge>,
    undelivered: Seconds<0>,
    untold: Seconds<1>,
    retention: Seconds<1>,
    own: Mutex<Own>,
}

/// What only this process knows.
#[derive(Default)]
struct Own {
    /// The event sinks that it tells. Others in the database may be turned off for good.
    event_sinks: Vec<&'static str>,
    /// When it last had nothing old left, or has removed some of it.
    removed: BTreeMap<&'static str, Timestamp>,
}

impl Behind {
    pub fn register(&self, registry: &mut Registry) {
        register! { registry;
            self.subscriptions => "subscriptions",
                "Subscriptions by state: enabled, disabled by an operator, failed (disabled by Ringfence)";
            self.undelivered => "subscriptions_oldest_age_seconds",
                "How old the oldest event is that waits for an enabled subscription; 0 if none does";
            self.untold => "event_sink_oldest_age_seconds",
                "How old the oldest event is that an event sink of this process was not told of; 0 if there is none";
            self.retention => "retention_age_seconds", "Since when this process has not got on with removing what is old, by what it is";
        }
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock()
    }

    /// This process tells an event sink.
    pub fn tells(&self, event_sink: &'static str) {
        let mut own = self.own();
        if !own.event_sinks.contains(&event_sink) {
            own.event_sinks.push(event_sink);
        }
    }

    /// This process got on with what is old: it has removed some, or there was none.
    pub fn removes(&self, what: Kept, now: Timestamp) {
        self.own().removed.insert(what.as_str(), now);
    }

    /// What the database says.
    pub fn show(&self, survey: &Survey, now: Timestamp) {
        for state in SubscriptionState::ALL {
            let state = state.as_str();
            let counted = survey.subscriptions.iter().find(|(known, _)| known == state);
            let count = counted.map_or(0, |(_, count)| *count);
            set(&self.subscriptions, &[("state", state)], count);
        }
        let age = |since: Option<Timestamp>| since.map_or(0.0, |since| seconds(since, now));
        self.undelivered
            .get_or_create(&[])
            .set(age(survey.undelivered_since));
        for event_sink in &self.own().event_sinks {
            // One that was never told of anything begins with what comes next.
            let known = survey.event_sinks.iter().find(|(name, _)| name == event_sink);
            let since = known.and_then(|(_, since)| *since);
            self.untold
                .get_or_create(&[("event_sink", *event_sink)])
                .set(age(since));
        }
    }

    /// The database cannot be read.
    pub fn forget(&self) {
        self.subscriptions.clear();
        self.undelivered.clear();
        self.untold.clear();
    }

    /// What needs no database.
    pub fn show_own(&self, now: Timestamp) {
        for (what, since) in &self.own().removed {
            self.retention
                .get_or_create(&[("what", *what)])
                .set(seconds(*since, now));
        }
    }
}

pub(super) fn set<const N: usize>(family: &Family<Words<N>, Gauge>, labels: &Words<N>, number: u64) {
    family
        .get_or_create(labels)
        .set(i64::try_from(number).unwrap_or(i64::MAX));
}
