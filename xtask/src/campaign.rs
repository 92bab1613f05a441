//! `cargo xtask campaign`: faults in everything around real processes, and a judge that asks the physical world.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use crate::error::XtaskError;
use crate::packages;
use crate::supervise::{Supervisor, exit_code};
use crate::test::BINARY;
use crate::workspace::{Build, Program, Workspace, build};

/// The arguments of the campaign.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Runs a campaign with the program as the tests use it, and starts the peers that it needs.
pub fn run(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let workspace = Workspace::find()?;
    let mut supervisor = Supervisor::new()?;
    let [ringfence, campaign] = build([Program::Ringfence, Program::Campaign], Build::ForTests)?;
    packages::provide_for_campaign(&workspace)?;
    let mut command = Command::new(campaign);
    command
        .arg("--folder")
        .arg(workspace.cache("campaign")?)
        .args(&arguments.words)
        .env(BINARY, ringfence)
        .stdin(Stdio::null());
    supervisor.run(command, false).map(exit_code)
}
