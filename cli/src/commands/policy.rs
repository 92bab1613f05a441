//! `ringfence policy`.

mod options;
mod recorded;
mod shown;
mod simulate;
mod site;

use clap::Subcommand;

use self::simulate::SimulateArgs;
use super::session::Session;
use crate::error::CliError;

/// `ringfence policy ...`
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Simulates what would happen if hosts fell silent, or how an incident would have ended under another policy; nothing is changed, and no device is asked
    Simulate(Box<SimulateArgs>),
}

pub async fn run(command: PolicyCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        PolicyCommand::Simulate(args) => Box::pin(simulate::run(*args, session)).await,
    }
}
