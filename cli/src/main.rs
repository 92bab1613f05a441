//! `ringfence`: the services and the operator's commands in one binary.

mod args;
mod backup;
mod client;
mod clock;
mod command_line;
mod commands;
mod completion;
mod config;
mod doctor;
mod error;
mod exit;
mod logging;
mod open_files;
mod output;
mod platforms;
mod services;
mod tokens;
mod traces;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::command_line::Cli;
use crate::config::Environment;
use crate::error::CliError;

/// Decisions use many small allocations: the system's allocator took a sixth of the processor's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    install_tls();
    open_files::allow_as_many_as_possible();
    // A shell that completes a command asks for the candidates.
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let cli = Cli::parse();
    let format = commands::format_of(&cli.command);
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::service("runtime", "cannot start", error))
        .and_then(|runtime| {
            runtime.block_on(Box::pin(commands::run(
                cli.command,
                &Environment::of_this_process(),
            )))
        });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is_told() {
                output::complain(&error, format);
            }
            ExitCode::from(error.exit_code() as u8)
        }
    }
}

/// Chooses the code for TLS; the libraries leave that to the program. A second call changes nothing.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
