//! A running service.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::LabError;
use crate::home::{note_second_start, wait_ready};
use crate::leash::Leash;
use crate::net::answers;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// The time limit of a start: two cores may have a dozen services to start, and tests to build.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// A start that takes longer is tried once more: sometimes one of Nova's services hangs for ever before its first log line.
const HANGS_AFTER: Duration = Duration::from_secs(90);

/// A service with a name.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    port: Option<u16>,
    leash: Leash,
    log: PathBuf,
    home: PathBuf,
    program: Program,
}

impl Daemon {
    pub(crate) fn start(site: &Site, name: &'static str, program: Program) -> Result<Self, LabError> {
        let log = site.log(name);
        let program = program.with_nothing_to_keep();
        let home = site.folder().to_owned();
        Ok(Self {
            name,
            port: None,
            leash: program.clone().start(&log, &home)?,
            log,
            home,
            program,
        })
    }

    /// Sets the port on which the service will answer.
    pub(crate) fn at(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Waits until the service answers, if it has a port.
    pub(crate) fn wait_answer(&mut self) -> Result<(), LabError> {
        let port = self.port;
        self.wait(|| port.is_none_or(answers))
    }

    pub(crate) fn wait(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<(), LabError> {
        let once = |daemon: &Self, limit, is_ready: &mut dyn FnMut() -> bool| {
            wait_ready(daemon.name, &daemon.leash, &daemon.log, limit, is_ready)
        };
        if once(self, HANGS_AFTER, &mut is_ready).is_ok() {
            return Ok(());
        }
        note_second_start(&self.log);
        self.leash.abort();
        self.leash = self.program.clone().start(&self.log, &self.home)?;
        once(self, READY_LIMIT, &mut is_ready)
    }

    pub(crate) fn crash(&mut self) {
        self.leash.crash();
    }
}
