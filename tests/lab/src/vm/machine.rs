//! The machine of a host: what its power button and its cables do.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::VmImage;
use super::qemu::{CARD, CONSOLE, QMP, Qemu};
use super::qmp::Qmp;
use super::store::VmStore;
use crate::error::LabError;
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::free_tcp_port;
use crate::programs::find_program;

const PROGRAM: &str = "qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
const READY_LIMIT: Duration = Duration::from_secs(60);

/// One machine. Its power is the QEMU process.
#[derive(Debug)]
pub(super) struct Machine {
    name: String,
    number: usize,
    image: VmImage,
    port: u16,
    nbd: std::path::PathBuf,
    power: Mutex<Option<Leash>>,
    home: Home,
}

impl Machine {
    /// One that is off.
    pub(super) fn new(image: &VmImage, store: &VmStore, name: &str) -> Result<Self, LabError> {
        let number = store.number(name).ok_or_else(|| LabError::Failed {
            program: name.to_owned(),
            output: "the store was not started for it".to_owned(),
        })?;
        Ok(Self {
            name: name.to_owned(),
            number,
            image: image.clone(),
            port: free_tcp_port()?,
            nbd: store.nbd(),
            power: Mutex::new(None),
            home: Home::new("vm")?,
        })
    }

    pub(super) fn is_on(&self) -> bool {
        self.power().as_ref().is_some_and(Leash::is_running)
    }

    pub(super) fn switch_on(&self) -> Result<(), LabError> {
        let mut power = self.power();
        if power.as_ref().is_some_and(Leash::is_running) {
            return Ok(());
        }
        // What is left of a machine that went off by itself ends first.
        *power = None;
        *power = Some(self.start()?);
        Ok(())
    }

    /// Returns when nothing of it runs any more, not even a thread in the middle of a write.
    pub(super) fn switch_off(&self) {
        if let Some(mut leash) = self.power().take() {
            leash.crash();
        }
    }

    pub(super) fn reset(&self) -> Result<(), LabError> {
        self.tell("system_reset", &json!({}))
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

    /// To the process itself.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), LabError> {
        match self.power().as_ref() {
            Some(leash) => leash.signal(signal),
            None => Err(self.is_off()),
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The lines that the host has printed since it was made, over all its boots. One that it has begun only is not among them.
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
        let mut qmp = Qmp::connect(&self.home.join(QMP))?;
        qmp.execute(command, arguments).map(|_| ())
    }

    fn start(&self) -> Result<Leash, LabError> {
        let program = find_program(PROGRAM).ok_or(LabError::Missing {
            program: PROGRAM,
            package: PACKAGE,
        })?;
        let qemu = Qemu {
            name: &self.name,
            number: self.number,
            image: &self.image,
            port: self.port,
            nbd: Some(&self.nbd),
            home: &self.home,
        };
        let socket = self.home.join(QMP);
        // That of the boot before would be taken for the new one.
        let _ = std::fs::remove_file(&socket);
        self.leash(&program, qemu.arguments(), &socket)
    }

    fn leash(&self, program: &Path, arguments: Vec<String>, socket: &Path) -> Result<Leash, LabError> {
        let log = self.home.join("qemu.log");
        let leash = Leash::start(Start {
            program,
            arguments,
            environment: Vec::new(),
            without: &[],
            // One that is stopped hears no other.
            stop_signal: Signal::SIGKILL,
            log: &log,
            home: self.home.path(),
            user: None,
        })?;
        wait_ready(PROGRAM, &leash, &log, READY_LIMIT, || socket.exists())?;
        Ok(leash)
    }

    fn is_off(&self) -> LabError {
        LabError::Failed {
            program: self.name.clone(),
            output: "the machine is off".to_owned(),
        }
    }

    fn power(&self) -> MutexGuard<'_, Option<Leash>> {
        self.power.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
