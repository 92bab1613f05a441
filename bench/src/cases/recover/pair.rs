//! A host that is about to die, and one that takes its servers.

use std::time::{Duration, Instant};

use ringfence_lab::{Cloud, Compute, LabError};
use ringfence_tests::Hypervisor;

use crate::error::BenchError;

/// Until nothing of the boots is under way any more.
const REST: Duration = Duration::from_secs(3);
/// Between two looks at the guests on disk, of which Nova notices nothing.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The longest that anybody here sleeps by itself, and as long again.
const PATIENCE: Duration = Duration::from_secs(360);

/// All servers are on the first, and there is no third.
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

    /// Cuts the power of the one host.
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

    /// Nova is asked only when all guests run there: a question would take from the time that it needs for them.
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

    /// Takes both out of the cloud. The servers go with the host that they are on now, and what Nova has noted of them on the first.
    pub fn remove(self) {
        self.other.remove(&self.cloud);
        self.dying.remove(&self.cloud);
    }
}
