//! The machine of a host: its power button and its cables.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use super::VmImage;
use super::qemu::{CARD, CONSOLE, QMP, Qemu, put_in_disk};
use super::qmp::Qmp;
use super::store::Way;
use crate::button::{self, Machine as _};
use crate::error::LabError;
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::free_tcp_port;
use crate::rope::Rope;

const PACKAGE: &str = "qemu-system-x86";
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A machine. The machine is on while its QEMU process runs.
#[derive(Debug)]
pub(super) struct Machine {
    image: VmImage,
    way: Way,
    port: u16,
    power: Mutex<Option<Running>>,
    /// Keeps the machine's files from outliving the test process while the machine is off.
    _rope: Rope,
    home: Home,
}

#[derive(Debug)]
struct Running {
    leash: Leash,
    has_disk: bool,
}

impl Machine {
    /// A machine that is off.
    pub(super) fn new(image: &VmImage, way: Way) -> Result<Self, LabError> {
        let home = Home::new("vm")?;
        Ok(Self {
            image: image.clone(),
            way,
            port: free_tcp_port()?,
            power: Mutex::new(None),
            _rope: Rope::of(home.path())?,
            home,
        })
    }

    /// Plugs the disk into a machine that lacks it, once its export is open. A machine that starts while it is cut off gets its disk later,
    /// as with a disk that is exported again.
    pub(super) fn look_for_disk(&self) -> Result<(), LabError> {
        let mut power = self.power();
        let lacks_it = |running: &&mut Running| running.is_still() && !running.has_disk;
        let Some(running) = power.as_mut().filter(lacks_it) else {
            return Ok(());
        };
        if self.way.is_open()? {
            let mut qmp = self.qmp()?;
            for (command, arguments) in put_in_disk(&self.way) {
                qmp.execute(command, &arguments)?;
            }
            running.has_disk = true;
        }
        Ok(())
    }

    pub(super) fn stop(&self) -> Result<(), LabError> {
        self.tell("stop", &json!({}))
    }

    pub(super) fn go_on(&self) -> Result<(), LabError> {
        self.tell("cont", &json!({}))
    }

    pub(super) fn plug(&self, plugged: bool) -> Result<(), LabError> {
        self.tell("set_link", &json!({ "name": CARD, "up": plugged }))
    }

    /// Sends a signal to the QEMU process.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), LabError> {
        match self.power().as_ref() {
            Some(running) => running.leash.signal(signal),
            None => Err(self.is_off()),
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The complete lines that the host has printed since it was made, over all its boots.
    pub(super) fn console(&self) -> String {
        let mut bytes = std::fs::read(self.home.join(CONSOLE)).unwrap_or_default();
        let end = bytes.iter().rposition(|&byte| byte == b'\n');
        bytes.truncate(end.map_or(0, |end| end + 1));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn tell(&self, command: &str, arguments: &serde_json::Value) -> Result<(), LabError> {
        if !self.is_on() {
            return Err(self.is_off());
        }
        self.qmp()?.execute(command, arguments).map(|_| ())
    }

    fn qmp(&self) -> Result<Qmp, LabError> {
        Qmp::connect(&self.home.join(QMP))
    }

    fn start(&self) -> Result<Leash, LabError> {
        let (program, libraries) = self.image.qemu().ok_or(LabError::Missing {
            program: VmImage::QEMU,
            package: PACKAGE,
        })?;
        let qemu = Qemu {
            image: &self.image,
            way: &self.way,
            port: self.port,
            home: &self.home,
        };
        let socket = self.home.join(QMP);
        // The socket of the boot before would be taken for the new one.
        let _ = std::fs::remove_file(&socket);
        let libraries = libraries.map(|folder| ("LD_LIBRARY_PATH", folder.display().to_string()));
        self.leash(
            &program,
            libraries.into_iter().collect(),
            qemu.arguments(),
            &socket,
        )
    }

    fn leash(
        &self,
        program: &Path,
        environment: Vec<(&'static str, String)>,
        arguments: Vec<String>,
        socket: &Path,
    ) -> Result<Leash, LabError> {
        let log = self.home.join("qemu.log");
        let leash = Leash::start(Start {
            arguments,
            environment,
            // A stopped process hears only SIGKILL.
            stop_signal: Signal::SIGKILL,
            ..Start::new(program, &log, self.home.path())
        })?;
        wait_ready(VmImage::QEMU, &leash, &log, READY_LIMIT, || socket.exists())?;
        Ok(leash)
    }

    fn is_off(&self) -> LabError {
        LabError::Failed {
            program: self.way.host.clone(),
            output: "the machine is off".to_owned(),
        }
    }

    fn power(&self) -> MutexGuard<'_, Option<Running>> {
        self.power.lock()
    }
}

impl button::Machine for Machine {
    fn is_on(&self) -> bool {
        self.power().as_ref().is_some_and(Running::is_still)
    }

    fn switch_on(&self) -> Result<(), LabError> {
        let mut power = self.power();
        if power.as_ref().is_some_and(Running::is_still) {
            return Ok(());
        }
        // The rest of a machine that went off by itself ends first.
        *power = None;
        *power = Some(Running {
            leash: self.start()?,
            has_disk: false,
        });
        Ok(())
    }

    /// Returns when no thread of the machine runs any more, not even one in the middle of a write.
    fn switch_off(&self) {
        if let Some(mut running) = self.power().take() {
            running.leash.crash();
        }
    }

    fn reset(&self) -> Result<(), LabError> {
        self.tell("system_reset", &json!({}))
    }
}

impl Running {
    fn is_still(&self) -> bool {
        self.leash.is_running()
    }
}
