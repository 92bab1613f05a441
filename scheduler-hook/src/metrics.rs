//! The hook's metrics.

use std::fmt;
use std::sync::{Arc, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::hook::Shared;

type Labels = [(&'static str, &'static str); 2];

/// The hook's metrics.
#[derive(Default)]
pub(crate) struct Metrics {
    answers: Family<Labels, Counter>,
}

impl Metrics {
    pub fn register(&self, shared: &Arc<Shared>, registry: &mut Registry) {
        registry.register(
            "scheduler_hook_answers",
            "Answers by question (schedule, evacuate, unforce, detach) and outcome (allowed, refused, unavailable); of schedule, each host counts",
            self.answers.clone(),
        );
        registry.register_collector(Box::new(Memory(Arc::downgrade(shared))));
    }

    pub fn count(&self, question: &'static str, outcome: &'static str, times: usize) {
        let labels = [("question", question), ("outcome", outcome)];
        let times = u64::try_from(times).unwrap_or(u64::MAX);
        self.answers.get_or_create(&labels).inc_by(times);
    }
}

/// The age of the hosts in memory at the time of a scrape.
struct Memory(Weak<Shared>);

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let Some(snapshot) = self.0.upgrade().and_then(|shared| shared.snapshot.load_full()) else {
            return Ok(());
        };
        if let Some(age) = snapshot.age() {
            let help = "How long ago the last successful read of the hosts began";
            let gauge = ConstGauge::new(age.as_secs_f64());
            let metric = encoder.encode_descriptor(
                "scheduler_hook_memory_age_seconds",
                help,
                None,
                MetricType::Gauge,
            )?;
            gauge.encode(metric)?;
        }
        let hosts = ConstGauge::new(i64::try_from(snapshot.len()).unwrap_or(i64::MAX));
        let help = "Hosts of clouds in the last read";
        let metric = encoder.encode_descriptor("scheduler_hook_hosts", help, None, MetricType::Gauge)?;
        hosts.encode(metric)
    }
}
