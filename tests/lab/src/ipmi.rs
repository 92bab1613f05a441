//! A real IPMI BMC, OpenIPMI's `ipmi_sim`: without a machine, or with a virtual one.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::button::Button;
use crate::error::{During, LabError};
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::free_udp_port;
use crate::programs::find_program;

const PACKAGE: &str = "openipmi";
const READY_LIMIT: Duration = Duration::from_secs(20);
const CHASSIS_SCRIPT: &str = include_str!("chassis.sh");
/// One BMC at the usual address, with an event log and no sensors.
const EMULATION: &str = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n\
                         sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n";

/// A fault of the BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpmiFault {
    /// No fault.
    None,
    /// Answers success and changes nothing.
    Lies,
    /// Answers success and changes nothing, and reads off after an off.
    Ghost,
    /// Takes 8 s for every answer about the chassis.
    Slow,
    /// Takes 8 s before it changes the power, which is beyond its client's deadline, and answers no other request meanwhile.
    Late,
    /// Refuses to change the power.
    Fails,
}

/// A BMC on a loopback UDP port of its own, with cipher suite 3. A client without that setting needs 10 s for each call.
#[derive(Debug)]
pub struct IpmiBmc {
    // Dropped in this order.
    leash: Leash,
    /// The connection to the machine, if there is one.
    button: Option<Button>,
    port: u16,
    home: Home,
}

impl IpmiBmc {
    /// The administrator's name.
    pub const USER: &'static str = "admin";
    /// The administrator's password.
    pub const PASSWORD: &'static str = "secret";

    /// Starts a BMC whose host is powered on.
    ///
    /// # Errors
    /// If `ipmi_sim` or `ipmitool` is not installed, or the BMC does not answer within 20 s.
    pub fn start() -> Result<Self, LabError> {
        Self::start_with(|_| Ok(None))
    }

    /// Starts a BMC for a machine, to which `wire` connects the BMC's folder.
    pub(crate) fn start_with(
        wire: impl FnOnce(&Path) -> Result<Option<Button>, LabError>,
    ) -> Result<Self, LabError> {
        let missing = |program, package| LabError::Missing { program, package };
        let program = find_program("ipmi_sim").ok_or(missing("ipmi_sim", PACKAGE))?;
        let ipmitool = find_program("ipmitool").ok_or(missing("ipmitool", "ipmitool"))?;
        let home = Home::new("ipmi")?;
        let port = free_udp_port()?;
        home.write("power", "1\n")?;
        home.write("fault", "none\n")?;
        home.make_folder("state")?;
        home.write("bmc.emu", EMULATION)?;
        let script = home.write_script("chassis.sh", CHASSIS_SCRIPT)?;
        home.write(
            "lan.conf",
            &lan_configuration(port, &script.display().to_string()),
        )?;
        let button = wire(home.path())?;
        let log = home.join("ipmi_sim.log");
        let leash = Leash::start(Start {
            arguments: ["-c", "lan.conf", "-f", "bmc.emu", "-s", "state", "-n"]
                .map(str::to_owned)
                .to_vec(),
            ..Start::new(&program, &log, home.path())
        })?;
        wait_ready("ipmi_sim", &leash, &log, READY_LIMIT, || {
            std::process::Command::new(&ipmitool)
                .args("-I lanplus -C 3 -N 1 -R 1 -H 127.0.0.1".split(' '))
                .args(["-U", Self::USER, "-E", "-p", &port.to_string(), "power", "status"])
                .env("IPMI_PASSWORD", Self::PASSWORD)
                .output()
                .is_ok_and(|done| done.status.success())
        })?;
        Ok(Self {
            leash,
            button,
            port,
            home,
        })
    }

    /// The UDP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes the BMC misbehave from now on.
    ///
    /// # Errors
    /// If the file that the BMC's script reads cannot be written.
    pub fn set_fault(&self, fault: IpmiFault) -> Result<(), LabError> {
        let word = match fault {
            IpmiFault::None => "none",
            IpmiFault::Lies => "lie",
            IpmiFault::Ghost => "ghost",
            IpmiFault::Slow => "slow",
            IpmiFault::Late => "late",
            IpmiFault::Fails => "fail",
        };
        self.home.write("seems-off", "")?;
        self.home.write("fault", &format!("{word}\n")).map(|_| ())
    }

    /// Whether the host really has power.
    ///
    /// # Errors
    /// If the file with the real power cannot be read.
    pub fn is_powered(&self) -> Result<bool, LabError> {
        if let Some(button) = &self.button {
            return Ok(button.is_on());
        }
        let path = self.home.join("power");
        let text = std::fs::read_to_string(&path).during(|| format!("reading {}", path.display()))?;
        Ok(text.trim() == "1")
    }

    /// Switches the host's power without the BMC.
    ///
    /// # Errors
    /// If the file with the real power cannot be written, or the machine does not start.
    pub fn set_powered(&self, powered: bool) -> Result<(), LabError> {
        if let Some(button) = &self.button {
            return button.set_on(powered);
        }
        self.home
            .write("power", if powered { "1\n" } else { "0\n" })
            .map(|_| ())
    }

    /// Every call that the BMC made to its chassis, one line each: the time in seconds, then the call.
    #[must_use]
    pub fn chassis_log(&self) -> String {
        std::fs::read_to_string(self.home.join("chassis.log")).unwrap_or_default()
    }

    /// Makes the BMC stop answering.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn silence(&self) -> Result<(), LabError> {
        self.leash.signal(Signal::SIGSTOP)
    }

    /// Makes a silenced BMC answer again.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn wake(&self) -> Result<(), LabError> {
        self.leash.signal(Signal::SIGCONT)
    }
}

impl Drop for IpmiBmc {
    fn drop(&mut self) {
        // A stopped process does not hear SIGTERM.
        let _ = self.wake();
    }
}

/// The BMC's configuration. `ipmi_sim` adds its own arguments to the command; without one before them a status request fails.
fn lan_configuration(port: u16, script: &str) -> String {
    let user = IpmiBmc::USER;
    let password = IpmiBmc::PASSWORD;
    let mut text = format!(
        "name \"bmc\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n"
    );
    for level in ["callback", "user", "operator", "admin"] {
        text.push_str(&format!("    allowed_auths_{level} none md2 md5 straight\n"));
    }
    text.push_str(&format!(
        "    guid a123456789abcdefa123456789abcdef\n  endlan\n  chassis_control \"{script} bmc\"\n  \
         user 1 true \"\" \"test\" user 10 none md2 md5 straight\n  \
         user 2 true \"{user}\" \"{password}\" admin 10 none md2 md5 straight\n"
    ));
    text
}
