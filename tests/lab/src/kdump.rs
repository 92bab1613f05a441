//! The real program with which a host in its crash kernel says so.

use std::net::SocketAddr;
use std::path::Path;

use crate::error::LabError;
use crate::home::Home;
use crate::leash::{Leash, Start};

const PROGRAM: &str = "/usr/libexec/fence-agents/fence_kdump_send";

/// A running `fence_kdump_send`.
#[derive(Debug)]
pub struct KdumpSender {
    _leash: Leash,
    _home: Home,
}

impl KdumpSender {
    /// Sends a message each second.
    ///
    /// # Errors
    /// It is not installed, or cannot be started.
    pub fn start(to: SocketAddr) -> Result<Self, LabError> {
        let program = Path::new(PROGRAM);
        if !program.is_file() {
            return Err(LabError::Missing {
                program: "fence_kdump_send",
                package: "fence-agents",
            });
        }
        let home = Home::new("kdump")?;
        let log = home.join("fence_kdump_send.log");
        let port = format!("--ipport={}", to.port());
        let arguments = [&port, "--family=auto", "--count=0", "--interval=1", "--verbose"];
        let leash = Leash::start(Start {
            arguments: arguments
                .into_iter()
                .map(str::to_owned)
                .chain([to.ip().to_string()])
                .collect(),
            ..Start::new(program, &log, home.path())
        })?;
        Ok(Self {
            _leash: leash,
            _home: home,
        })
    }
}
