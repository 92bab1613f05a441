//! `cargo xtask search`, `cargo xtask model-check`: look for histories that must never be, at random and exhaustively.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

use crate::error::XtaskError;
use crate::supervise::{Supervisor, exit_code};
use crate::workspace::cargo;

/// The arguments of the search.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Searches random histories.
pub fn search(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    run("ringfence-world", "search", arguments)
}

/// Searches every history of some small worlds.
pub fn model_check(arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    run("ringfence-modelcheck", "modelcheck", arguments)
}

fn run(package: &str, program: &str, arguments: &Arguments) -> Result<ExitCode, XtaskError> {
    let mut supervisor = Supervisor::new()?;
    let mut command = cargo();
    command
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            package,
            "--bin",
            program,
            "--",
        ])
        .args(&arguments.words)
        .stdin(Stdio::null());
    supervisor.run(command, false).map(exit_code)
}
