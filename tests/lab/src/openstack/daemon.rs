//! A running service.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::LabError;
use crate::home::wait_ready;
use crate::leash::Leash;
use crate::net::is_open;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// Two cores may have a dozen services to start, and tests to build.
const READY_LIMIT: Duration = Duration::from_secs(180);

/// A service under its name.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: &'static str,
    port: Option<u16>,
    leash: Leash,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn start(site: &Site, name: &'static str, program: Program) -> Result<Self, LabError> {
        let log = site.log(name);
        let leash = program.with_nothing_to_keep().start(&log, site.folder())?;
        Ok(Self {
            name,
            port: None,
            leash,
            log,
        })
    }

    /// Says where it will listen.
    pub(crate) fn at(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Waits until it listens, if it does so at all.
    pub(crate) fn wait_open(&self) -> Result<(), LabError> {
        self.wait(|| self.port.is_none_or(is_open))
    }

    pub(crate) fn wait(&self, is_ready: impl FnMut() -> bool) -> Result<(), LabError> {
        wait_ready(self.name, &self.leash, &self.log, READY_LIMIT, is_ready)
    }

    pub(crate) fn crash(&mut self) {
        self.leash.crash();
    }
}
