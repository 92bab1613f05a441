//! A compute host with a BMC: the host follows the power that its BMC reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use ringfence_lab::{Cloud, Compute, IpmiBmc};
use tokio::task::block_in_place;

/// Time between two readings of the power.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A host of Nova and its BMC.
pub struct Hypervisor {
    pub name: String,
    pub bmc: Arc<IpmiBmc>,
    compute: Arc<Mutex<Option<Compute>>>,
    ends: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Hypervisor {
    /// Connects a host to a new BMC.
    pub fn new(compute: Compute) -> Self {
        let bmc = Arc::new(IpmiBmc::start().unwrap());
        let name = compute.name().to_owned();
        let compute = Arc::new(Mutex::new(Some(compute)));
        let ends = Arc::new(AtomicBool::new(false));
        let watcher = std::thread::spawn({
            let (bmc, compute, ends) = (Arc::clone(&bmc), Arc::clone(&compute), Arc::clone(&ends));
            move || follow(&bmc, &compute, &ends)
        });
        Self {
            name,
            bmc,
            compute,
            ends,
            watcher: Some(watcher),
        }
    }

    /// Gives access to the compute of the host.
    pub fn with<T>(&self, work: impl FnOnce(&mut Compute) -> T) -> T {
        block_in_place(|| work(self.compute.lock().as_mut().unwrap()))
    }

    /// Kills `nova-compute`; the guests go on running.
    pub fn kill(&self) {
        self.with(Compute::kill);
    }

    /// The ids of the servers whose guests run on the host.
    pub fn running(&self) -> Vec<String> {
        let domains = self.with(|compute| compute.domains().unwrap());
        let running = domains.into_iter().filter(|(_, domain)| domain.running);
        running.map(|(id, _)| id).collect()
    }

    /// Removes the host from the cloud.
    pub fn remove(mut self, cloud: &Cloud) {
        self.end();
        let compute = self.compute.lock().take().unwrap();
        block_in_place(|| cloud.remove(compute).unwrap());
    }

    fn end(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(watcher) = self.watcher.take() {
            block_in_place(|| watcher.join().unwrap());
        }
    }
}

impl Drop for Hypervisor {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

fn follow(bmc: &IpmiBmc, compute: &Mutex<Option<Compute>>, ends: &AtomicBool) {
    let mut was_on = true;
    while !ends.load(Ordering::SeqCst) {
        let is_on = bmc.is_powered().unwrap_or(was_on);
        if is_on != was_on {
            let mut compute = compute.lock();
            if let Some(compute) = compute.as_mut() {
                if is_on {
                    compute.power_on().unwrap();
                } else {
                    compute.power_off().unwrap();
                }
            }
            was_on = is_on;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
