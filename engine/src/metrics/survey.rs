//! Numbers that are read when metrics are asked for: from the database, and from what the engine holds.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringfence_core::{
    Catalogue, FailureState, FencingState, OperationKind, OperationStatus, SourceCount, SuspensionScope,
    Timestamp, error_chain,
};
use ringfence_db::{Survey, Suspended};
use tokio::time::{Instant, timeout};

use super::behind::{Behind, set};
use super::dead_letters::Letters;
use super::{Words, register};
use crate::Engine;

/// How long the numbers of one look are good for.
const GOOD_FOR: Duration = Duration::from_secs(3);
/// How long the database is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

type Gauges2 = Family<Words<2>, Gauge>;
/// A source by its name; there are 64 at most.
type BySource = [(&'static str, String); 1];
/// With no labels; a family, because it can be left out while the number is not known.
type Seconds = Family<Words<0>, Gauge<f64, AtomicU64>>;
type Count = Family<Words<0>, Gauge>;

/// The gauges of one engine. While the database cannot be read, those that come from it are left out: an old number would be
/// taken for a present one.
#[derive(Default)]
pub(crate) struct Gauges {
    database_up: Gauge,
    database_writable: Gauge,
    hosts: Gauges2,
    operations: Gauges2,
    oldest_unproven_fence: Seconds,
    outbox_rows: Count,
    outbox_age: Seconds,
    feed_lag: Count,
    failing_checks: Family<Words<1>, Gauge>,
    suspensions: Family<Words<1>, Gauge>,
    source_hosts: Family<BySource, Gauge>,
    source_heard_hosts: Family<BySource, Gauge>,
    oldest_suspension: Seconds,
    next_suspension_end: Seconds,
    /// The names of all drivers.
    drivers: Vec<&'static str>,
    listeners: Gauge,
    pub letters: Letters,
    pub behind: Behind,
    looked_at: Mutex<Option<Instant>>,
}

impl Gauges {
    pub fn new(drivers: &Catalogue) -> Self {
        Self {
            drivers: drivers.all().map(|declared| declared.name).collect(),
            ..Self::default()
        }
    }

    pub fn register(&self, registry: &mut Registry) {
        register! { registry;
            self.database_up => "database_up", "Whether the database could be read for these numbers (1) or not (0)";
            self.database_writable => "database_writable", "Whether the database wrote down what it was last given to try (1) or not (0)";
            self.hosts => "hosts", "Hosts by failure state and fencing state";
            self.operations => "live_operations", "Operations that are running, are held or need an operator";
            self.oldest_unproven_fence => "oldest_unproven_fence_age_seconds",
                "Since when the oldest live fence waits whose host is not FENCED by it; 0 if there is none";
            self.outbox_rows => "outbox_messages", "Messages that are committed and whose publishing is not on record yet";
            self.outbox_age => "outbox_oldest_age_seconds",
                "How long the oldest of them is overdue, counted from two seconds after its commit; 0 if none is";
            self.feed_lag => "event_feed_lag_events",
                "Events that are numbered and that this process has not passed on to its listeners yet";
            self.failing_checks => "method_checks_failing", "Methods' devices whose last health check was not answered well, by driver";
            self.source_hosts => "source_hosts", "Hosts on which a source has reported, without those that are FENCED or being fenced";
            self.source_heard_hosts => "source_heard_hosts", "Hosts of these of which the source has said UP lately";
            self.suspensions => "suspensions", "Suspensions that are in force, by what is suspended";
            self.oldest_suspension => "oldest_suspension_age_seconds", "Since when the oldest of them lasts; 0 if there is none";
            self.next_suspension_end => "next_suspension_end_seconds", "After what time the next of them ends by itself; absent if none does";
            self.listeners => "event_listeners", "Listeners to the stream of events in this process";
        }
        self.letters.register(registry);
        self.behind.register(registry);
    }

    /// Whether it is time to look again; who is told so looks.
    fn is_time(&self) -> bool {
        let mut looked_at = self.looked_at.lock();
        let is_time = looked_at.is_none_or(|at| at.elapsed() >= GOOD_FOR);
        if is_time {
            *looked_at = Some(Instant::now());
        }
        is_time
    }

    fn show(&self, survey: &Survey, now: Timestamp, read_up_to: u64) {
        self.database_up.set(1);
        for failure in FailureState::ALL {
            for fencing in FencingState::ALL {
                let (failure, fencing) = (failure.as_str(), fencing.as_str());
                let labels = [("failure_state", failure), ("fencing_state", fencing)];
                set(&self.hosts, &labels, find(&survey.hosts, failure, fencing));
            }
        }
        for kind in OperationKind::ALL {
            for status in [
                OperationStatus::Running,
                OperationStatus::Held,
                OperationStatus::NeedsOperator,
            ] {
                let (kind, status) = (kind.as_str(), status.as_str());
                let labels = [("kind", kind), ("status", status)];
                set(&self.operations, &labels, find(&survey.operations, kind, status));
            }
        }
        let age = |since: Option<Timestamp>| since.map_or(0.0, |since| super::moved::seconds(since, now));
        self.oldest_unproven_fence
            .get_or_create(&[])
            .set(age(survey.oldest_unproven_fence));
        self.outbox_age.get_or_create(&[]).set(age(survey.outbox_since));
        set(&self.outbox_rows, &[], survey.outbox_rows);
        for driver in self.drivers.iter().copied() {
            let counted = survey.failing_checks.iter().find(|(known, _)| known == driver);
            let failing = counted.map_or(0, |(_, failing)| *failing);
            set(&self.failing_checks, &[("driver", driver)], failing);
        }
        self.show_sources(&survey.sources);
        self.show_suspensions(&survey.suspensions, now);
        set(&self.feed_lag, &[], survey.last_event.saturating_sub(read_up_to));
        self.behind.show(survey, now);
    }

    fn show_sources(&self, sources: &BTreeMap<String, SourceCount>) {
        self.source_hosts.clear();
        self.source_heard_hosts.clear();
        for (source, SourceCount { hosts, heard, .. }) in sources {
            let label = [("source", source.clone())];
            let shown = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            self.source_hosts.get_or_create(&label).set(shown(*hosts));
            self.source_heard_hosts.get_or_create(&label).set(shown(*heard));
        }
    }

    fn show_suspensions(&self, suspended: &Suspended, now: Timestamp) {
        let in_force = || suspended.iter().filter(|(_, one)| one.is_in_force(now));
        for scope in SuspensionScope::ALL {
            let count = in_force().filter(|(of, _)| of == scope).count();
            set(&self.suspensions, &[("scope", scope.as_str())], count as u64);
        }
        let oldest = in_force().map(|(_, one)| one.since).min();
        let age = oldest.map_or(0.0, |since| super::moved::seconds(since, now));
        self.oldest_suspension.get_or_create(&[]).set(age);
        match in_force().filter_map(|(_, one)| one.until).min() {
            Some(until) => drop(
                self.next_suspension_end
                    .get_or_create(&[])
                    .set(super::moved::seconds(now, until)),
            ),
            None => self.next_suspension_end.clear(),
        }
    }

    fn forget(&self) {
        self.database_up.set(0);
        self.hosts.clear();
        self.operations.clear();
        self.oldest_unproven_fence.clear();
        self.outbox_age.clear();
        self.outbox_rows.clear();
        self.feed_lag.clear();
        self.failing_checks.clear();
        self.source_hosts.clear();
        self.source_heard_hosts.clear();
        self.suspensions.clear();
        self.oldest_suspension.clear();
        self.next_suspension_end.clear();
        self.behind.forget();
    }
}

fn find(counted: &[(String, String, u64)], first: &str, second: &str) -> u64 {
    let is_it = |(a, b, _): &&(String, String, u64)| a == first && b == second;
    counted.iter().find(is_it).map_or(0, |(_, _, count)| *count)
}

/// Brings the gauges up to date, at most every few seconds and never for longer than a few.
pub(crate) async fn look(engine: &Engine) {
    let gauges = &engine.0.metrics.gauges;
    gauges
        .listeners
        .set(i64::try_from(engine.0.feed.listeners()).unwrap_or(i64::MAX));
    gauges.behind.show_own(engine.0.clock.now());
    gauges.database_writable.set(i64::from(engine.is_written()));
    if !gauges.is_time() {
        return;
    }
    let mut reader = engine.0.db.reader();
    let survey = match timeout(PATIENCE, ringfence_db::survey(&mut reader, engine.0.clock.now())).await {
        Ok(Ok(survey)) => Some(survey),
        Ok(Err(error)) => {
            tracing::debug!(error = %error_chain(&error), "the database could not be read for the metrics");
            None
        }
        Err(_) => None,
    };
    let segments = &engine.0.metrics.segments;
    if let Some(survey) = survey {
        gauges.show(&survey, engine.0.clock.now(), engine.0.feed.read_up_to());
        segments.show(&survey.segments);
    } else {
        gauges.forget();
        segments.forget();
    }
    gauges.letters.look(engine.0.bus.dead_letter_box()).await;
}
