//! One host: a machine, its BMC, and what is to be known of it.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::button::Button;
use super::disk_slot::DiskSlot;
use super::machine::Machine;
use super::{VmImage, VmStore};
use crate::error::LabError;
use crate::ipmi::IpmiBmc;

/// A boot takes 5 s of a core, and has it for itself only on a quiet machine.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);
/// How long a caller waits for a host's answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// What a host prints once in each boot, before the boot's id.
const BOOT: &str = "boot ";

/// A host that writes to the disk of a [`VmStore`] for as long as it runs and is let. Dropping it ends it, and so does the death of the
/// process that owns it.
#[derive(Debug)]
pub struct VmHost {
    // They end in this order.
    bmc: IpmiBmc,
    _disk: DiskSlot,
    machine: Arc<Machine>,
}

impl VmHost {
    /// Switches on a host of this name, which the store was started for. It takes its time until it writes.
    ///
    /// # Errors
    /// QEMU or the BMC is not installed, or does not become ready.
    pub fn start(image: &VmImage, store: &VmStore, name: &str) -> Result<Self, LabError> {
        let way = store.way(name).ok_or_else(|| LabError::Failed {
            program: name.to_owned(),
            output: "the store was not started for it".to_owned(),
        })?;
        let machine = Arc::new(Machine::new(image, way)?);
        machine.switch_on()?;
        let of_bmc = Arc::clone(&machine);
        let bmc = IpmiBmc::start_with(|folder| Button::wire(folder, of_bmc).map(Some))?;
        Ok(Self {
            bmc,
            _disk: DiskSlot::of(Arc::clone(&machine)),
            machine,
        })
    }

    /// Its BMC.
    #[must_use]
    pub fn bmc(&self) -> &IpmiBmc {
        &self.bmc
    }

    /// Whether the machine has power, whatever its BMC says.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.machine.is_on()
    }

    /// Presses its power button, past the BMC.
    ///
    /// # Errors
    /// QEMU does not start.
    pub fn switch_on(&self) -> Result<(), LabError> {
        self.machine.switch_on()
    }

    /// Pulls its power cord.
    pub fn switch_off(&self) {
        self.machine.switch_off();
    }

    /// Presses its reset button: a new boot begins.
    ///
    /// # Errors
    /// It is off.
    pub fn reset(&self) -> Result<(), LabError> {
        self.machine.reset()
    }

    /// Makes the host stand still, and its clocks with it: it will not know that time has passed.
    ///
    /// # Errors
    /// It is off.
    pub fn freeze(&self) -> Result<(), LabError> {
        self.machine.stop()
    }

    /// Lets a frozen host go on.
    ///
    /// # Errors
    /// It is off.
    pub fn thaw(&self) -> Result<(), LabError> {
        self.machine.go_on()
    }

    /// Makes the whole machine stand still. Its clocks will jump.
    ///
    /// # Errors
    /// It is off.
    pub fn hang(&self) -> Result<(), LabError> {
        self.machine.signal(Signal::SIGSTOP)
    }

    /// Lets a machine that hangs go on.
    ///
    /// # Errors
    /// It is off.
    pub fn wake(&self) -> Result<(), LabError> {
        self.machine.signal(Signal::SIGCONT)
    }

    /// Pulls the cable of its network card. Its disk is not reached over it.
    ///
    /// # Errors
    /// It is off.
    pub fn unplug(&self) -> Result<(), LabError> {
        self.machine.plug(false)
    }

    /// Plugs the cable in again.
    ///
    /// # Errors
    /// It is off.
    pub fn plug(&self) -> Result<(), LabError> {
        self.machine.plug(true)
    }

    /// Where it answers; copies of it can be asked from anywhere.
    #[must_use]
    pub fn address(&self) -> VmAddress {
        VmAddress(self.machine.port())
    }

    /// The ids of its boots so far, as its console shows them, the present one last.
    #[must_use]
    pub fn boots(&self) -> Vec<String> {
        let console = self.machine.console();
        let lines = console.lines().filter_map(|line| line.trim().strip_prefix(BOOT));
        lines.map(str::to_owned).collect()
    }

    /// Waits for its first boot, second boot, ..., and tells its id.
    ///
    /// # Errors
    /// It does not come within three minutes.
    pub fn until_boot(&self, number: usize) -> Result<String, LabError> {
        let begun = Instant::now();
        while begun.elapsed() < BOOT_LIMIT {
            if let Some(boot) = self.boots().get(number - 1) {
                return Ok(boot.clone());
            }
            std::thread::sleep(POLL);
        }
        let console = self.machine.console();
        Err(LabError::NotSeen {
            what: format!("boot {number}"),
            seconds: BOOT_LIMIT.as_secs(),
            seen: crate::home::tail(console.as_bytes()),
        })
    }

    /// How many writes it has begun in its present boot, those that failed included, as its console shows it.
    #[must_use]
    pub fn tried(&self) -> u64 {
        let console = self.machine.console();
        let last = console.lines().rev().find_map(|line| {
            let (tried, _) = line.strip_prefix("tried ")?.split_once(" taken ")?;
            tried.parse().ok()
        });
        last.unwrap_or_default()
    }
}

/// Where a host answers.
#[derive(Clone, Copy, Debug)]
pub struct VmAddress(u16);

impl VmAddress {
    /// Asks which boot it is. `None` if there is no answer within a second: that the call is taken is none, since QEMU does so for a
    /// host that is dead.
    #[must_use]
    pub fn ask(self) -> Option<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.0));
        let mut host = TcpStream::connect_timeout(&address, ANSWER_LIMIT).ok()?;
        host.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
        let mut answer = String::new();
        host.read_to_string(&mut answer).ok()?;
        let boot = answer.strip_suffix('\n')?;
        Some(boot.to_owned())
    }
}
