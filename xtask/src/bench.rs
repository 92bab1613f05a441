//! `cargo xtask bench`: measures the program as it is shipped, with peers of its own.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use crate::error::XtaskError;
use crate::peers::{OpenStackUse, Parts, Peers, Wanted};
use crate::say::say;
use crate::supervise::{Supervisor, exit_code};
use crate::test::BINARY;
use crate::without::Without;
use crate::workspace::{Build, Program, Workspace, build};

/// The arguments of the measurement.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    #[command(flatten)]
    pub without: Without,
    /// Cases and options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Measures, and returns the exit code of the measurement.
pub fn run(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let workspace = Workspace::find()?;
    let mut supervisor = Supervisor::new()?;
    let [ringfence, bench] = build([Program::Ringfence, Program::Bench], Build::ForShipping)?;
    let openstack = if arguments.without.has_openstack() {
        OpenStackUse::Parts
    } else {
        OpenStackUse::None
    };
    // The others are left out: no case needs them.
    let wanted = Wanted {
        openstack,
        vm: false,
        kubernetes: arguments.without.has_kubernetes(),
        ceph: false,
        page: false,
    };
    let parts = Parts::provide(&workspace, wanted)?;
    if let Some(why) = parts.no_kubernetes() {
        say(&format!(
            "NOT MEASURED: everything with Kubernetes, because {why}"
        ));
    }
    // Files that were just built and installed must not be written to the disk while commits are measured.
    nix::unistd::sync();
    let peers = Peers::start(parts)?;
    let mut command = Command::new(bench);
    command
        .args(&arguments.words)
        .envs(peers.environment())
        .env(BINARY, ringfence)
        .stdin(Stdio::null());
    supervisor.run(command, false).map(exit_code)
}
