//! What is physically so: which boot of a host runs, whether it writes, what was cut from it. The service is never asked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use ringfence_core::Resource;
use ringfence_simulators::{Condition, DeviceView, Fault, Handle, HostView, PortState, SimulatorError};

/// Between two writes of a host.
pub const WRITES_EVERY: Duration = Duration::from_millis(10);

/// One host at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// It runs and reaches its storage.
    pub writes: bool,
    /// Which boot it is.
    pub boot: u64,
    /// Whether it has power.
    pub powered: bool,
    /// What goes on in it.
    pub condition: Condition,
    /// Its storage or its network is cut.
    pub is_cut: bool,
    /// What no rule can know: another party has started it, and no sign of life of that boot has arrived.
    pub is_unheard_of: bool,
    /// The boot of which a person last said that it is dead.
    pub word: Option<u64>,
}

impl Moment {
    /// Whether this boot wrote at one moment, and still does at another, while the rules could know of it.
    pub fn wrote_until(&self, later: &Self) -> bool {
        let excused = self.is_unheard_of || later.is_unheard_of;
        self.writes && later.writes && self.boot == later.boot && !excused
    }

    /// Whether nothing of it can run, and nothing but another party starts it.
    pub fn is_dead(&self) -> bool {
        !self.powered || self.condition == Condition::Crashed
    }
}

/// What was noted of a host.
#[derive(Clone, Debug)]
struct Known {
    writes: u64,
    boot: u64,
    /// When it last did not write, or wrote without that any rule could know of it.
    safe_at: Instant,
    /// The boot from which its storage was taken while it ran.
    cut_boot: Option<u64>,
    was_storage_cut: bool,
    /// The first boot of which somebody has to have heard.
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

/// The truth about all hosts.
pub struct Truth {
    world: Handle,
    known: Mutex<BTreeMap<String, Known>>,
}

impl Truth {
    /// Of simulated hosts.
    pub fn new(world: Handle) -> Self {
        Self {
            world,
            known: Mutex::default(),
        }
    }

    /// Where the devices listen.
    pub fn url(&self) -> String {
        self.world.url()
    }

    /// Lets every host that can write do so. The hosts whose storage was given back to a boot that it had been taken from.
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

    /// Every host as it is now.
    pub fn moments(&self) -> BTreeMap<String, Moment> {
        let known = self.lock();
        let moment = |host: HostView| {
            let moment = moment(&host, known.get(&host.seen.name));
            (host.seen.name, moment)
        };
        self.world.hosts().into_iter().map(moment).collect()
    }

    /// One host as it is now.
    pub fn moment(&self, host: &str) -> Option<Moment> {
        self.moments().remove(host)
    }

    /// Whether a host has written all the time since then.
    pub fn has_written_since(&self, host: &str, since: Instant) -> bool {
        self.lock().get(host).is_some_and(|known| known.safe_at < since)
    }

    /// What all hosts have written.
    pub fn writes(&self) -> u64 {
        self.lock().values().map(|known| known.writes).sum()
    }

    /// What a monitor sees: the failure state, and the boot with its number where the host answers.
    pub fn observe(&self) -> Vec<HostView> {
        self.world.hosts()
    }

    /// A sign of life of this boot has arrived.
    pub fn heard(&self, host: &str, boot: u64) {
        if let Some(known) = self.lock().get_mut(host)
            && known.unheard_boot.is_some_and(|unheard| unheard <= boot)
        {
            known.unheard_boot = None;
            known.safe_at = Instant::now();
        }
    }

    /// A person is about to say that the host is dead. `None` if that is not so.
    pub fn give_word(&self, host: &str) -> Option<()> {
        let moment = self.moment(host).filter(Moment::is_dead)?;
        self.lock().get_mut(host)?.word = Some(moment.boot);
        Some(())
    }

    /// The host dies, in one way or another.
    pub fn befalls(&self, host: &str, condition: Condition) -> Result<(), SimulatorError> {
        self.world.set_condition(host, condition)
    }

    /// Another party boots the host, with the power as it is.
    pub fn reboot(&self, host: &str) -> Result<(), SimulatorError> {
        self.started_by_another(host);
        self.world.set_condition(host, Condition::Crashed)?;
        self.world.set_condition(host, Condition::Running)
    }

    /// Another party switches the host on.
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

    /// Makes a device misbehave, or behave again.
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

/// Whether its storage was given back to a boot that it had been taken from.
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
