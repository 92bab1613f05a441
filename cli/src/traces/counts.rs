//! How many spans were sent and lost.

use std::sync::LazyLock;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// The counts of spans in this process. There is one, as there is one subscriber.
pub(super) static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub sent: Counter,
    pub queue_full: Counter,
    pub not_taken: Counter,
}

impl Counts {
    pub fn lost(&self) -> u64 {
        self.queue_full.get() + self.not_taken.get()
    }
}

/// Adds the numbers of spans to the metrics of the process.
pub fn register_metrics(registry: &mut Registry) {
    let lost = "Spans that no collector took because the queue was full, or because it did not take them";
    registry.register(
        "trace_spans_sent",
        "Spans that the collector took",
        COUNTS.sent.clone(),
    );
    for (why, counter) in [
        ("queue_full", &COUNTS.queue_full),
        ("not_taken", &COUNTS.not_taken),
    ] {
        let labels = [("why".into(), why.into())].into_iter();
        registry
            .sub_registry_with_labels(labels)
            .register("trace_spans_lost", lost, counter.clone());
    }
}
