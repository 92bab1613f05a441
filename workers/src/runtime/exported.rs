//! The worker's counters, as Prometheus reads them.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::context::Context;

/// What is read when metrics are asked for.
struct Exported(Arc<Context>);

pub(super) fn register(context: &Arc<Context>, registry: &mut Registry) {
    registry.register_collector(Box::new(Exported(Arc::clone(context))));
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exported").field(&self.0.metrics).finish()
    }
}

impl Collector for Exported {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let now = self.0.metrics.snapshot();
        let mut family = |name: &str, help: &str, label: &str, counts: &[(&str, u64)]| {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (word, count) in counts {
                let labels = [(label, *word)];
                ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
            }
            Ok(())
        };
        family(
            "worker_attempts",
            "Attempts that this worker has ended, by outcome.",
            "outcome",
            &[
                ("confirmed", now.confirmed),
                ("refused", now.refused),
                ("unknown", now.unknown),
            ],
        )?;
        family(
            "worker_claims_failed",
            "Claims of this worker that were refused, or that no engine answered.",
            "reason",
            &[
                ("refused", now.claims_refused),
                ("unanswered", now.claims_unanswered),
            ],
        )?;
        family(
            "worker_refused_messages",
            "Messages to this worker that were refused: a bad signature, or not what was expected.",
            "reason",
            &[
                ("bad_signature", now.bad_signatures),
                ("unreadable", now.unreadable),
            ],
        )?;
        family(
            "worker_driver_faults",
            "Drivers that panicked, or that did not stop when they were told to.",
            "fault",
            &[("panicked", now.driver_panics), ("stuck", now.drivers_stuck)],
        )?;
        family(
            "worker_kdump_messages",
            "Datagrams to the kdump listener of this worker: heard from a host, from a foreign address, or unreadable.",
            "what",
            &[
                ("heard", now.kdump_heard),
                ("foreign", now.kdump_foreign),
                ("unreadable", now.kdump_unreadable),
            ],
        )?;
        let help = "Reports of kdump messages that no engine has taken.";
        let metric =
            encoder.encode_descriptor("worker_kdump_reports_lost", help, None, MetricType::Counter)?;
        ConstCounter::new(now.kdump_untold).encode(metric)?;
        let help = "Results that could not be delivered.";
        let metric = encoder.encode_descriptor("worker_results_lost", help, None, MetricType::Counter)?;
        ConstCounter::new(now.results_lost).encode(metric)?;
        let help = "Questions about devices that were answered.";
        let metric =
            encoder.encode_descriptor("worker_questions_answered", help, None, MetricType::Counter)?;
        ConstCounter::new(now.questions_answered).encode(metric)?;
        let help = "Attempts that act at this moment.";
        let metric = encoder.encode_descriptor("worker_acting", help, None, MetricType::Gauge)?;
        ConstGauge::new(self.0.acting_now()).encode(metric)
    }
}
