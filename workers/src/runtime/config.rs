//! The settings of one worker.

use std::net::SocketAddr;

use ringfence_bus::Queue;
use ringfence_core::{Resource, validate_name};

use crate::WorkerError;

/// The most attempts that one worker carries out at a time.
const MAX_CONCURRENCY: usize = 1024;

/// Who a worker is, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Its name, unique among the workers.
    pub name: String,
    /// The zones that it reaches.
    pub zones: Vec<String>,
    /// What it acts on.
    pub resources: Vec<Resource>,
    /// How many attempts it carries out at a time, 1 to 1024. Attempts that wait for their device do not count.
    pub concurrency: usize,
    /// Where it listens for kdump messages; `None`: it does not.
    pub kdump_listen: Option<SocketAddr>,
}

impl WorkerConfig {
    /// A worker for everything in one zone, 64 attempts at a time.
    #[must_use]
    pub fn new(name: impl Into<String>, zone: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            zones: vec![zone.into()],
            resources: Resource::ALL.to_vec(),
            concurrency: 64,
            kdump_listen: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), WorkerError> {
        let wrong = |why: String| Err(WorkerError::Configuration(why));
        if let Err(problem) = validate_name("name", &self.name) {
            return wrong(problem.to_string());
        }
        for zone in &self.zones {
            if let Err(problem) = validate_name("zones", zone) {
                return wrong(problem.to_string());
            }
        }
        if self.zones.is_empty() || self.resources.is_empty() {
            return wrong("at least one zone and one resource are needed".to_owned());
        }
        if !(1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            return wrong(format!(
                "concurrency is {}; 1 to {MAX_CONCURRENCY} is allowed",
                self.concurrency
            ));
        }
        Ok(())
    }

    /// All queues that the worker serves, each once.
    pub(super) fn queues(&self) -> Vec<Queue> {
        let mut queues = Vec::new();
        for zone in &self.zones {
            for &resource in &self.resources {
                // What acts on nothing is a question, and never a task.
                if !matches!(resource, Resource::Query | Resource::Heartbeat) {
                    queues.push(Queue::Tasks {
                        resource,
                        zone: zone.clone(),
                    });
                }
                queues.push(Queue::Devices {
                    resource,
                    zone: zone.clone(),
                });
            }
        }
        queues.sort();
        queues.dedup();
        queues
    }

    /// Unsettled deliveries of one queue: some act, and some wait for their device without keeping others from acting.
    pub(super) fn prefetch(&self) -> u16 {
        u16::try_from(self.concurrency.saturating_mul(4).max(32)).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_or_resource_named_twice_is_served_once() {
        let mut config = WorkerConfig::new("w1", "z1");
        config.zones.push("z1".to_owned());
        assert_eq!(config.queues().len(), 10);
    }

    #[test]
    fn unusable_settings_are_refused() {
        assert!(WorkerConfig::new("w1", "z1").check().is_ok());
        assert!(WorkerConfig::new("", "z1").check().is_err());
        assert!(WorkerConfig::new("w1", "z 1").check().is_err());
        assert!(
            WorkerConfig {
                zones: Vec::new(),
                ..WorkerConfig::new("w1", "z1")
            }
            .check()
            .is_err()
        );
        assert!(
            WorkerConfig {
                concurrency: 0,
                ..WorkerConfig::new("w1", "z1")
            }
            .check()
            .is_err()
        );
    }
}
