//! What an engine counts. Nothing is global: each engine has its own numbers, and each process its own registry.
//!
//! Labels take words of ours only: the number of series has a bound. Names that a user gave are labels of what is counted by segment and condition, where they
//! are bounded by themselves.

mod behind;
mod dead_letters;
mod exposition;
mod gates;
mod moved;
mod segments;
mod survey;

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use ringfence_bus::{BusError, ClaimReply};
use ringfence_core::{Catalogue, CheckOutcome};
use ringfence_db::{DeliveryKind, DeliveryRow, DeliveryStatus, Kept};

use crate::EngineError;
use crate::commit::Tried;
use crate::log::answer_name;

pub use exposition::{Exposition, METRICS_CONTENT_TYPE};
pub(crate) use gates::PlatformGates;
pub(crate) use moved::Moved;
pub(crate) use segments::SegmentNumbers;
pub(crate) use survey::Gauges;

/// Registers numbers, each under its name and with what it says.
macro_rules! register {
    ($registry:ident; $($number:expr => $name:literal, $what:literal;)+) => {
        $($registry.register($name, $what, $number.clone());)+
    };
}
use register;

/// Labels with words of ours.
pub(crate) type Words<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<Words<N>, Counter>;
type Histograms<const N: usize> = Family<Words<N>, Histogram, fn() -> Histogram>;

/// Histograms of work inside this machine: 0.5 ms to 8 s.
fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.0, 15))
}

/// Histograms of what devices and people do: 0.1 s to 14 minutes.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(0.1, 2.0, 14))
}

/// Histograms of how long something stayed as it was: 1 s to 12 days.
fn lasting() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 11))
}

/// What a call of a webhook comes to.
const DELIVERY_OUTCOMES: [&str; 3] = ["delivered", "retried", "failed"];

/// The numbers of one engine.
pub(crate) struct Metrics {
    decisions: Counters<2>,
    decision_seconds: Histograms<1>,
    claims: Counters<2>,
    refused_messages: Counters<1>,
    attempts: Counters<3>,
    attempt_seconds: Histograms<2>,
    lease_expiries: Counter,
    left_off: Counter,
    proof_seconds: Histograms<1>,
    fence_seconds: Histogram,
    operation_seconds: Histograms<2>,
    told: Counters<1>,
    event_sink_failures: Counters<1>,
    left_out: Counters<1>,
    deliveries: Counters<2>,
    delivery_seconds: Histograms<1>,
    checks: Counters<2>,
    removed: Counters<1>,
    failure_state_seconds: Histograms<1>,
    fencing_state_seconds: Histograms<1>,
    pub gauges: Gauges,
    pub segments: SegmentNumbers,
    pub platform_gates: PlatformGates,
    drivers: Catalogue,
}

impl Metrics {
    pub fn new(drivers: &Catalogue) -> Self {
        let metrics = Self {
            decisions: Family::default(),
            decision_seconds: Family::new_with_constructor(short),
            claims: Family::default(),
            refused_messages: Family::default(),
            attempts: Family::default(),
            attempt_seconds: Family::new_with_constructor(long),
            lease_expiries: Counter::default(),
            left_off: Counter::default(),
            proof_seconds: Family::new_with_constructor(long),
            fence_seconds: long(),
            operation_seconds: Family::new_with_constructor(long),
            told: Family::default(),
            event_sink_failures: Family::default(),
            left_out: Family::default(),
            deliveries: Family::default(),
            delivery_seconds: Family::new_with_constructor(short),
            checks: Family::default(),
            removed: Family::default(),
            failure_state_seconds: Family::new_with_constructor(lasting),
            fencing_state_seconds: Family::new_with_constructor(lasting),
            gauges: Gauges::new(drivers),
            segments: SegmentNumbers::default(),
            platform_gates: PlatformGates::default(),
            drivers: drivers.clone(),
        };
        // From the beginning, so that the first one is seen as a change.
        for reason in ["bad_signature", "unreadable"] {
            let _ = metrics.refused_messages.get_or_create(&[("reason", reason)]);
        }
        for driver in drivers.all() {
            for outcome in CheckOutcome::ALL {
                let labels = [("driver", driver.name), ("outcome", outcome.as_str())];
                let _ = metrics.checks.get_or_create(&labels);
            }
        }
        for kind in DeliveryKind::ALL {
            for outcome in DELIVERY_OUTCOMES {
                let labels = [("kind", kind.as_str()), ("outcome", outcome)];
                let _ = metrics.deliveries.get_or_create(&labels);
            }
        }
        for what in Kept::ALL {
            let _ = metrics.removed.get_or_create(&[("what", what.as_str())]);
        }
        metrics
    }

    pub fn register(&self, registry: &mut Registry) {
        register! { registry;
            self.decisions => "decisions", "Inputs that were decided, by input and by what came of them";
            self.decision_seconds => "decision_duration_seconds", "From taking an input to its commit or refusal";
            self.claims => "claims", "Questions of workers (claim, renew) and how they were answered (granted, busy, refused)";
            self.refused_messages => "engine_refused_messages",
                "Messages to the engine that were refused: a bad signature, or not what was expected";
            self.attempts => "attempts", "Attempts that ended, by driver, task and outcome";
            self.attempt_seconds => "attempt_duration_seconds", "From publishing an attempt's task to its end";
            self.lease_expiries => "lease_expiries", "Attempts whose worker fell silent";
            self.left_off => "hosts_left_off", "Fences and evacuations that were to give the power back and have not seen it on";
            self.proof_seconds => "proof_latency_seconds", "From asking for an operation to each of its proofs, by kind of proof";
            self.fence_seconds => "fence_duration_seconds", "From asking for a fence to FENCED";
            self.operation_seconds => "operation_duration_seconds", "From asking for an operation to its end";
            self.failure_state_seconds => "failure_state_duration_seconds",
                "How long hosts were in a failure state, counted when they leave it";
            self.fencing_state_seconds => "fencing_state_duration_seconds", "How long hosts were FENCED, counted when they are taken back";
            self.told => "event_sink_told_events", "Events that were told to an event sink, by event_sink";
            self.event_sink_failures => "event_sink_failures",
                "Tries to tell an event sink of events that failed, by event_sink; they are made again";
            self.left_out => "event_sink_left_out_events",
                "Events that can never be told to an event sink, by event_sink: the log says why";
            self.deliveries => "deliveries",
                "Calls of webhooks, by why (event, redelivery, test) and by what came of them (delivered, retried, failed)";
            self.delivery_seconds => "delivery_duration_seconds", "How long calls of webhooks took, by what came of them";
            self.checks => "method_checks",
                "Health checks of methods, by driver and by what came of them (confirmed, unknown, worker_missing, refused)";
            self.removed => "retention_removed_rows",
                "Rows that were removed because they were old, by what they were (events, operations, audit, deliveries)";
        }
        self.gauges.register(registry);
        self.segments.register(registry);
        self.platform_gates.register(registry);
    }

    pub fn count_decision(&self, input: &'static str, came_to: &Result<Tried, EngineError>, took: Duration) {
        let outcome = match came_to {
            Ok(Tried::Applied(applied)) => answer_name(&applied.answer),
            Ok(Tried::DeviceBusy) => "device_busy",
            Err(EngineError::Refused(_)) => "refused",
            Err(_) => "error",
        };
        self.decisions
            .get_or_create(&[("input", input), ("outcome", outcome)])
            .inc();
        self.decision_seconds
            .get_or_create(&[("input", input)])
            .observe(took.as_secs_f64());
    }

    pub fn count_claim(&self, is_new: bool, reply: &ClaimReply) {
        let question = if is_new { "claim" } else { "renew" };
        let answer = match reply {
            ClaimReply::Granted { .. } => "granted",
            ClaimReply::Busy { .. } => "busy",
            ClaimReply::Refused { .. } => "refused",
        };
        self.claims
            .get_or_create(&[("question", question), ("answer", answer)])
            .inc();
    }

    /// This process tells the event sink from now on.
    pub fn begin_event_sink(&self, event_sink: &'static str) {
        for counters in [&self.told, &self.event_sink_failures, &self.left_out] {
            let _ = counters.get_or_create(&[("event_sink", event_sink)]);
        }
        self.gauges.behind.tells(event_sink);
    }

    pub fn count_event_sink_failure(&self, event_sink: &'static str) {
        self.event_sink_failures
            .get_or_create(&[("event_sink", event_sink)])
            .inc();
    }

    pub fn count_left_out(&self, event_sink: &'static str) {
        self.left_out.get_or_create(&[("event_sink", event_sink)]).inc();
    }

    pub fn count_told(&self, event_sink: &'static str, events: usize) {
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        self.told
            .get_or_create(&[("event_sink", event_sink)])
            .inc_by(events);
    }

    pub fn count_delivery(&self, delivery: &DeliveryRow, took: Duration) {
        let outcome = match delivery.status {
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Pending => "retried",
            DeliveryStatus::Failed => "failed",
        };
        self.deliveries
            .get_or_create(&[("kind", delivery.kind.as_str()), ("outcome", outcome)])
            .inc();
        self.delivery_seconds
            .get_or_create(&[("outcome", outcome)])
            .observe(took.as_secs_f64());
    }

    pub fn count_check(&self, driver: &'static str, outcome: CheckOutcome) {
        self.checks
            .get_or_create(&[("driver", driver), ("outcome", outcome.as_str())])
            .inc();
    }

    pub fn count_removed(&self, what: Kept, rows: u64) {
        self.removed
            .get_or_create(&[("what", what.as_str())])
            .inc_by(rows);
    }

    pub fn count_refused_message(&self, error: &BusError) {
        let reason = if matches!(error, BusError::BadSignature { .. }) {
            "bad_signature"
        } else {
            "unreadable"
        };
        self.refused_messages.get_or_create(&[("reason", reason)]).inc();
    }
}
