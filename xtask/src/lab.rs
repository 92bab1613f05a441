//! `cargo xtask lab`: runs a command with the tests' peers.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::{Command, ExitCode};

use crate::error::XtaskError;
use crate::peers::{OpenStackUse, Parts, Peers, Wanted};
use crate::say::say;
use crate::supervise::{Supervisor, exit_code};
use crate::without::Without;
use crate::workspace::{Workspace, forget_own_package};

/// The command to run.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub without: Without,
    /// The command with its arguments; none starts a shell
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Runs the command with the peers and returns its exit code.
pub fn run(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let workspace = Workspace::find()?;
    let mut supervisor = Supervisor::new()?;
    let openstack = if arguments.without.has_openstack() {
        OpenStackUse::Running(1)
    } else {
        OpenStackUse::None
    };
    let wanted = Wanted {
        openstack,
        vm: arguments.without.has_vm(),
        kubernetes: arguments.without.has_kubernetes(),
        ceph: arguments.without.has_ceph(),
        page: arguments.without.has_page(),
    };
    let parts = Parts::provide(&workspace, wanted)?;
    if let Some(why) = parts.no_vm() {
        say(&format!("there are no virtual hosts: {why}"));
    }
    if let Some(why) = parts.no_kubernetes() {
        say(&format!("there is no Kubernetes: {why}"));
    }
    if let Some(why) = parts.no_ceph() {
        say(&format!("there is no Ceph: {why}"));
    }
    let peers = Peers::start(parts)?;
    let mut command = match arguments.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            forget_own_package(&mut command);
            command.args(rest);
            command
        }
        None => Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
    };
    command.envs(peers.environment());
    let interactive = std::io::stdin().is_terminal();
    supervisor.run(command, interactive).map(exit_code)
}
