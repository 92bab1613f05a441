//! A host that is about to die, and the host that takes its servers.

use std::time::{Duration, Instant};

use ringfence_lab::{Cloud, Compute, LabError};
use ringfence_tests::Hypervisor;

use crate::error::BenchError;

/// How long nothing runs after the boots.
const REST: Duration = Duration::from_secs(3);
/// Between two looks at the guests' files, which do not load Nova.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Twice the longest sleep of any of the programs.
const PATIENCE: Duration = Duration::from_secs(360);

/// All servers are on the first host, and there is no third.
pub struct Pair {
    pub cloud: Cloud,
    pub dying: Hypervisor,
    pub other: Hypervisor,
    /// The ids of the servers.
    pub servers: Vec<String>,
}

impl Pair {
    pub fn make(cloud: &Cloud, number: usize, servers: usize) -> Result<Self, BenchError> {
        let (dying, other) = (format!("dying-{number}"), format!("other-{number}"));
        let [dying, other] = cloud.computes([&dying, &other])?;
        let names: Vec<String> = (1..=servers).map(|server| format!("s{server}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let servers = cloud.boot(&dying, &names, &[])?;
        std::thread::sleep(REST);
        Ok(Self {
            cloud: cloud.clone(),
            dying: Hypervisor::new(dying),
            other: Hypervisor::new(other),
            servers: servers.into_iter().map(|server| server.id).collect(),
        })
    }

    /// Cuts the power of the first host.
    pub fn cut_power(&self) -> Result<(), LabError> {
        self.dying.with(Compute::power_off)
    }

    /// Waits until all servers are ACTIVE on the other host.
    pub fn until_recovered(&self) -> Result<Instant, BenchError> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.are_there()? {
                return Ok(Instant::now());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(BenchError::Late {
            what: format!("{} servers on {}", self.servers.len(), self.other.name),
            seconds: PATIENCE.as_secs(),
        })
    }

    /// Nova is asked only when all guests run on the other host: a request would slow it down before.
    fn are_there(&self) -> Result<bool, BenchError> {
        if self.other.running().len() < self.servers.len() {
            return Ok(false);
        }
        let there = self.cloud.servers_on(&self.other.name)?;
        let active = there
            .iter()
            .filter(|server| server.status == "ACTIVE" && server.task_state.is_none());
        Ok(active.count() == self.servers.len())
    }

    /// Removes both hosts from the cloud, with the servers on each and Nova's records of the first.
    pub fn remove(self) {
        self.other.remove(&self.cloud);
        self.dying.remove(&self.cloud);
    }
}
