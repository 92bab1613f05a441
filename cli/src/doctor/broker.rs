//! The broker: whether it can be reached, whether its queues are served, and whether there are dead letters.

use ringfence_bus::{AmqpBus, Bus, BusError, DeadLetters, Queue, QueueLoad};

use super::Report;
use super::hosts::Site;
use super::verdict::Served;
use crate::config::Settings;
use crate::error::error_chain;
use crate::services::parts;

const PART: &str = "broker";
/// The messages of a backlog that healthy workers and engines do not let grow.
const MANY: u32 = 1000;

/// Returns the broker if it can be used. Standalone has none.
pub(super) async fn connect(settings: &Settings, report: &mut Report) -> Option<AmqpBus> {
    if settings.bus.url.is_none() {
        let found = "bus.url is not set: this is a standalone service, whose bus is inside its process";
        report.good(PART, found);
        return None;
    }
    let config = match parts::broker_config("doctor", "cli", settings) {
        Ok(config) => config,
        Err(error) => {
            report.failure(PART, error_chain(&error), "mend bus.url or bus.ca_file");
            return None;
        }
    };
    let address = config.address();
    match AmqpBus::connect(config).await {
        Ok(bus) => {
            report.good(PART, format!("{address} can be used"));
            Some(bus)
        }
        Err(error) => {
            report.failure(PART, error_chain(&error), "start it, or mend bus.url");
            None
        }
    }
}

/// Returns what workers serve.
pub(super) async fn look(bus: &AmqpBus, site: &Site, report: &mut Report) -> Served {
    for queue in [Queue::Claims, Queue::Results] {
        let load = bus.queue_load(&queue).await;
        judge(&queue, load, "start an engine: ringfence engine", report);
    }
    let mut served = Served::new();
    for (resource, zone) in site.needs() {
        let queue = Queue::Tasks {
            resource,
            zone: zone.clone(),
        };
        let remedy = format!(
            "start a worker with {zone} in worker.zones and {} in worker.resources",
            resource.as_str()
        );
        if judge(&queue, bus.queue_load(&queue).await, &remedy, report) {
            served.insert((resource, zone));
        }
    }
    match bus.dead_letter_count().await {
        Ok(0) => report.good("dead letters", "there are none"),
        Ok(count) => report.warning(
            "dead letters",
            format!("{count} messages could not be processed"),
            "ringfence dead-letter list",
        ),
        Err(error) => report.failure("dead letters", error_chain(&error), "see the broker's log"),
    }
    served
}

/// Whether a service consumes the queue.
fn judge(
    queue: &Queue,
    load: Result<Option<QueueLoad>, BusError>,
    remedy: &str,
    report: &mut Report,
) -> bool {
    match load {
        Ok(Some(load)) if load.consumers > 0 && load.messages < MANY => {
            report.good("queues", format!("{queue}: {} serve it", load.consumers));
            true
        }
        Ok(Some(load)) if load.consumers > 0 => {
            report.warning(
                "queues",
                format!("{queue}: {} messages wait although it is served", load.messages),
                "check the logs of its services; start more of them",
            );
            true
        }
        Ok(Some(load)) => {
            let waiting = load.messages;
            report.failure(
                "queues",
                format!("{queue}: no service serves it, {waiting} messages wait"),
                remedy,
            );
            false
        }
        Ok(None) => {
            report.failure(
                "queues",
                format!("{queue}: no service has ever served it"),
                remedy,
            );
            false
        }
        Err(error) => {
            report.failure("queues", error_chain(&error), "see the broker's log");
            false
        }
    }
}
