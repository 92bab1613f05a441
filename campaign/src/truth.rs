//! The physical state: which boot of a host runs, whether it writes, and what was cut from it. The service is never asked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use ringfence_core::Resource;
use ringfence_simulators::{Condition, DeviceView, Fault, Handle, HostView, PortState, SimulatorError};

/// Time between two writes of a host.
pub const WRITES_EVERY: Duration = Duration::from_millis(10);

/// The state of one host at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Whether the host runs and reaches its storage.
    pub writes: bool,
    /// The number of the boot.
    pub boot: u64,
    /// Whether the host has power.
    pub powered: bool,
    /// The condition of the host.
    pub condition: Condition,
    /// Whether storage or network is cut.
    pub is_cut: bool,
    /// Whether the host was started without Ringfence, and no sign of life of that boot has arrived: no rule can know of it.
    pub is_unheard_of: bool,
    /// The last boot that a person has confirmed as dead.
    pub word: Option<u64>,
}

impl Moment {
    /// Whether one boot writes at this moment and at a later one, and the rules could know of it.
    pub fn wrote_until(&self, later: &Self) -> bool {
        let excused = self.is_unheard_of || later.is_unheard_of;
        self.writes && later.writes && self.boot == later.boot && !excused
    }

    /// Whether the host can run only after it was started without Ringfence.
    pub fn is_dead(&self) -> bool {
        !self.powered || self.condition == Condition::Crashed
    }
}

/// Records of a host.
#[derive(Clone, Debug)]
struct Known {
    writes: u64,
    boot: u64,
    /// The last time that the host did not write, or wrote in a way that no rule can know of.
    safe_at: Instant,
    /// The boot from which storage was taken while it ran.
    cut_boot: Option<u64>,
    was_storage_cut: bool,
    /// The first boot of which a sign of life must arrive.
    unheard_boot: Option<u64>,
    word: Option<u64>,
}

impl Known {
    fn new() -> Self {
        Self {
            writes: 0,
            boot: 1,
            safe_at: Instant::now(),
            cut_boot: None,
            was_storage_cut: false,
            unheard_boot: None,
            word: None,
        }
    }
}

/// The physical state of all hosts.
pub struct Truth {
    world: Handle,
    known: Mutex<BTreeMap<String, Known>>,
}

impl Truth {
    /// The physical state of simulated hosts.
    pub fn new(world: Handle) -> Self {
        Self {
            world,
            known: Mutex::default(),
        }
    }

    /// The address of the devices.
    pub fn url(&self) -> String {
        self.world.url()
    }

    /// Lets every host write that can. Returns the hosts whose storage was given back to the boot that it had been taken from.
    pub fn write(&self) -> Vec<String> {
        let mut known = self.lock();
        let mut returned = Vec::new();
        for host in self.world.hosts() {
            let name = &host.seen.name;
            let noted = known.entry(name.clone()).or_insert_with(Known::new);
            if note(noted, &host) {
                returned.push(name.clone());
            }
        }
        returned
    }

    /// The state of every host now.
    pub fn moments(&self) -> BTreeMap<String, Moment> {
        let known = self.lock();
        let moment = |host: HostView| {
            let moment = moment(&host, known.get(&host.seen.name));
            (host.seen.name, moment)
        };
        self.world.hosts().into_iter().map(moment).collect()
    }

    /// The state of one host now.
    pub fn moment(&self, host: &str) -> Option<Moment> {
        self.moments().remove(host)
    }

    /// Whether a host has written all the time since then.
    pub fn has_written_since(&self, host: &str, since: Instant) -> bool {
        self.lock().get(host).is_some_and(|known| known.safe_at < since)
    }

    /// The number of writes of all hosts.
    pub fn writes(&self) -> u64 {
        self.lock().values().map(|known| known.writes).sum()
    }

    /// What a monitor sees: the failure state, and the boot's number if the host answers.
    pub fn observe(&self) -> Vec<HostView> {
        self.world.hosts()
    }

    /// Records that a sign of life of this boot has arrived.
    pub fn heard(&self, host: &str, boot: u64) {
        if let Some(known) = self.lock().get_mut(host)
            && known.unheard_boot.is_some_and(|unheard| unheard <= boot)
        {
            known.unheard_boot = None;
            known.safe_at = Instant::now();
        }
    }

    /// Records a person's true confirmation that the host is dead. `None` if it is not dead.
    pub fn confirm_dead(&self, host: &str) -> Option<()> {
        let moment = self.moment(host).filter(Moment::is_dead)?;
        self.lock().get_mut(host)?.word = Some(moment.boot);
        Some(())
    }

    /// Makes the host hang or crash.
    pub fn set_condition(&self, host: &str, condition: Condition) -> Result<(), SimulatorError> {
        self.world.set_condition(host, condition)
    }

    /// Boots the host without Ringfence, and without a change of its power.
    pub fn reboot(&self, host: &str) -> Result<(), SimulatorError> {
        self.started_by_another(host);
        self.world.set_condition(host, Condition::Crashed)?;
        self.world.set_condition(host, Condition::Running)
    }

    /// Switches the host on without Ringfence.
    pub fn switch_on(&self, host: &str) -> Result<(), SimulatorError> {
        if self.moment(host).is_some_and(|moment| !moment.powered) {
            self.started_by_another(host);
        }
        self.world.set_state(host, Resource::Power, PortState::On)
    }

    fn started_by_another(&self, host: &str) {
        let boot = self.moment(host).map_or(0, |moment| moment.boot + 1);
        if let Some(known) = self.lock().get_mut(host) {
            known.unheard_boot = Some(boot);
        }
    }

    /// Gives a device a fault, or none.
    pub fn set_fault(
        &self,
        host: &str,
        resource: Resource,
        fault: Option<Fault>,
    ) -> Result<(), SimulatorError> {
        self.world.set_fault(host, resource, fault)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock()
    }
}

/// Whether storage was given back to the boot that it had been taken from.
fn note(known: &mut Known, host: &HostView) -> bool {
    if host.may_write {
        known.writes += 1;
    }
    if !host.may_write || known.boot != host.boot || known.unheard_boot.is_some() {
        known.safe_at = Instant::now();
    }
    known.boot = host.boot;
    let runs = host.powered && host.condition != Condition::Crashed;
    let is_cut = is_cut(host, Resource::Storage);
    let is_returned = known.was_storage_cut && !is_cut && runs && known.cut_boot == Some(host.boot);
    if is_cut && !known.was_storage_cut && runs {
        known.cut_boot = Some(host.boot);
    }
    known.was_storage_cut = is_cut;
    is_returned
}

fn moment(host: &HostView, known: Option<&Known>) -> Moment {
    let unheard = known.and_then(|known| known.unheard_boot);
    Moment {
        writes: host.may_write,
        boot: host.boot,
        powered: host.powered,
        condition: host.condition,
        is_cut: is_cut(host, Resource::Storage) || is_cut(host, Resource::Network),
        is_unheard_of: unheard.is_some(),
        word: known.and_then(|known| known.word),
    }
}

fn is_cut(host: &HostView, resource: Resource) -> bool {
    let end = format!("/{}", resource.as_str());
    let mut devices = host.devices.iter().filter(|(name, _)| name.ends_with(&end));
    devices.any(|(_, DeviceView { state, .. })| state.takes_away())
}
