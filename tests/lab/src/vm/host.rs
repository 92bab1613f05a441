//! A virtual host: a machine and its BMC.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::disk_slot::DiskSlot;
use super::machine::Machine;
use super::{VmImage, VmStore};
use crate::button::{Button, Machine as _};
use crate::error::LabError;
use crate::ipmi::IpmiBmc;

/// The time limit of a boot, which takes 5 s of a core, on a busy machine.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);
/// How long a caller waits for a host's answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// The text that a host prints once in each boot, before the boot's id.
const BOOT: &str = "boot ";

/// A host that writes to the disk of a [`VmStore`] while it runs and its export is open. It ends when the value is dropped or the owning
/// process dies.
#[derive(Debug)]
pub struct VmHost {
    // Dropped in this order.
    bmc: IpmiBmc,
    _disk: DiskSlot,
    machine: Arc<Machine>,
}

impl VmHost {
    /// Switches on a host of this name, with which the store was started. The host writes some seconds later.
    ///
    /// # Errors
    /// If QEMU or the BMC is not installed, or does not become ready.
    pub fn start(image: &VmImage, store: &VmStore, name: &str) -> Result<Self, LabError> {
        let way = store.way(name).ok_or_else(|| LabError::Failed {
            program: name.to_owned(),
            output: "the store was not started with this host".to_owned(),
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

    /// The host's BMC.
    #[must_use]
    pub fn bmc(&self) -> &IpmiBmc {
        &self.bmc
    }

    /// Whether the machine really has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.machine.is_on()
    }

    /// Presses the power button, without the BMC.
    ///
    /// # Errors
    /// If QEMU does not start.
    pub fn switch_on(&self) -> Result<(), LabError> {
        self.machine.switch_on()
    }

    /// Unplugs the power cord.
    pub fn switch_off(&self) {
        self.machine.switch_off();
    }

    /// Presses the reset button: a new boot begins.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn reset(&self) -> Result<(), LabError> {
        self.machine.reset()
    }

    /// Freezes the host and its clocks, so that the host does not know that time has passed.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn freeze(&self) -> Result<(), LabError> {
        self.machine.stop()
    }

    /// Thaws a frozen host.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn thaw(&self) -> Result<(), LabError> {
        self.machine.go_on()
    }

    /// Makes the whole machine hang. Its clocks jump when it goes on.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn hang(&self) -> Result<(), LabError> {
        self.machine.signal(Signal::SIGSTOP)
    }

    /// Ends a hang of the machine.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn wake(&self) -> Result<(), LabError> {
        self.machine.signal(Signal::SIGCONT)
    }

    /// Unplugs the network cable. The disk does not depend on the network.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn unplug(&self) -> Result<(), LabError> {
        self.machine.plug(false)
    }

    /// Plugs the network cable in again.
    ///
    /// # Errors
    /// If the machine is off.
    pub fn plug(&self) -> Result<(), LabError> {
        self.machine.plug(true)
    }

    /// The address at which the host answers; copies of it can be used anywhere.
    #[must_use]
    pub fn address(&self) -> VmAddress {
        VmAddress(self.machine.port())
    }

    /// The ids of the host's boots so far, by its console, the present one last.
    #[must_use]
    pub fn boots(&self) -> Vec<String> {
        let console = self.machine.console();
        let lines = console.lines().filter_map(|line| line.trim().strip_prefix(BOOT));
        lines.map(str::to_owned).collect()
    }

    /// Waits for the boot with this number, from 1, and returns its id.
    ///
    /// # Errors
    /// If the boot does not come within three minutes.
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

    /// The number of writes that the host has tried in its present boot, also of failed ones, by its console.
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

/// The address at which a host answers.
#[derive(Clone, Copy, Debug)]
pub struct VmAddress(u16);

impl VmAddress {
    /// Asks the host for its boot's id. `None` if no answer comes within a second; an accepted connection is no answer, since QEMU also
    /// accepts connections for a dead host.
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
