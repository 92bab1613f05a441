//! A process that can be killed, frozen and started again.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use parking_lot::Mutex;

use crate::error::LabError;
use crate::home::wait_ready;
use crate::leash::{Leash, Start};

/// The time limit of a start on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Variables that would change a program's settings, and are removed from its environment.
const NOT_INHERITED: &[&str] = &[
    "KUBECONFIG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
];

/// A process, or the place of one that has ended.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    program: PathBuf,
    home: PathBuf,
    log: PathBuf,
    leash: Mutex<Option<Leash>>,
}

impl Process {
    /// A process that is not started yet.
    pub(super) fn new(name: &'static str, program: PathBuf, home: PathBuf) -> Self {
        let log = home.join(format!("{name}.log"));
        Self {
            name,
            program,
            home,
            log,
            leash: Mutex::new(None),
        }
    }

    /// Starts the process unless it runs. It has nothing that it needs to save at its end.
    pub(super) fn start(&self, arguments: Vec<String>) -> Result<(), LabError> {
        let mut leash = self.leash.lock();
        if leash.as_ref().is_some_and(Leash::is_running) {
            return Ok(());
        }
        *leash = Some(Leash::start(Start {
            arguments,
            environment: vec![
                // Kubelets leave folders where temporary ones are made.
                ("TMPDIR", self.home.display().to_string()),
                // Memory is there, and processor time is short.
                ("GOGC", "400".to_owned()),
            ],
            without: NOT_INHERITED,
            stop_signal: Signal::SIGKILL,
            ..Start::new(&self.program, &self.log, &self.home)
        })?);
        Ok(())
    }

    /// Waits until the process is ready, unless it ends before.
    pub(super) fn wait(&self, is_ready: impl FnMut() -> bool) -> Result<(), LabError> {
        let leash = self.leash.lock();
        match leash.as_ref() {
            Some(leash) => wait_ready(self.name, leash, &self.log, READY_LIMIT, is_ready),
            None => Err(self.absent()),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.leash.lock().as_ref().is_some_and(Leash::is_running)
    }

    /// Kills the process with SIGKILL. On return it has ended.
    pub(super) fn kill(&self) {
        if let Some(mut leash) = self.leash.lock().take() {
            leash.crash();
        }
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), LabError> {
        match self.leash.lock().as_ref() {
            Some(leash) => leash.signal(signal),
            None => Err(self.absent()),
        }
    }

    pub(super) fn log(&self) -> &PathBuf {
        &self.log
    }

    fn absent(&self) -> LabError {
        LabError::Failed {
            program: self.name.to_owned(),
            output: "the process is not running; start it first".to_owned(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
