//! Fencing a host and rejoining it.

use std::time::Duration;

use clap::Args;
use reqwest::StatusCode;
use serde_json::json;

use super::super::arguments::span;
use super::super::completed::hosts;
use super::super::follow::{Follower, ended, until_succeeded};
use super::super::session::Session;
use super::show::proven_by;
use crate::client::view::{Host, Operation};
use crate::client::{Answer, Request};
use crate::error::CliError;

/// The note where the host already has the state that was asked for.
const BEGUN_NOTHING: &str = "the host already was in this state: nothing was begun";

/// Whether the command waits for the operation.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Waits until the operation is done, and shows its progress
    #[arg(long, short)]
    wait: bool,
    /// How long to wait at most, as in 30s or 5m; the operation goes on after that
    #[arg(long, requires = "wait", value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
}

impl WaitArgs {
    /// Whether the command waits at all.
    pub fn is_wanted(&self) -> bool {
        self.wait
    }

    /// How long the command waits at most.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// `ringfence host fence`
#[derive(Debug, Args)]
pub struct FenceArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
    /// Only shows what the fence would do now; nothing is changed. The exit code is the fence's where it would be refused
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// `ringfence host rejoin`
#[derive(Debug, Args)]
pub struct RejoinArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
    /// Confirms that the host has booted since the fence
    #[arg(long)]
    booted: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// `ringfence host fence`
pub async fn fence(args: FenceArgs, session: &mut Session) -> Result<(), CliError> {
    if args.dry_run {
        return super::explain::dry_run(&args.host, &args.reason, session).await;
    }
    let body = json!({"reason": args.reason});
    let answer = session
        .client
        .send(Request::post(&["hosts", &args.host, "fence"], body))
        .await?;
    if answer.status != StatusCode::ACCEPTED {
        say_so_before(session);
        return show_fenced(session, &answer);
    }
    if !args.wait.wait {
        return show_started(session, &answer);
    }
    let operation: Operation = answer.view()?;
    until_fenced(session, &operation.id, args.wait.timeout).await?;
    let answer = session
        .client
        .send(Request::get(&["hosts", &operation.host_id]))
        .await?;
    show_fenced(session, &answer)
}

/// The host is FENCED at the first sufficient set of proofs; the other tasks of the operation go on.
pub async fn until_fenced(session: &Session, id: &str, timeout: Option<Duration>) -> Result<(), CliError> {
    let mut follower = Follower::new(session, id, timeout)?;
    loop {
        let operation = follower.look().await?;
        if operation.is_over() || !operation.proofs.is_empty() {
            let host = follower.host(&operation).await?;
            if host.is_fenced() && host.generation == operation.generation {
                return Ok(());
            }
        }
        if operation.is_over() {
            return Err(ended(&operation));
        }
        follower.pause().await?;
    }
}

/// `ringfence host rejoin`
pub async fn rejoin(args: RejoinArgs, session: &mut Session) -> Result<(), CliError> {
    let body = json!({"reason": args.reason, "boot_confirmed": args.booted});
    let answer = session
        .client
        .send(Request::post(&["hosts", &args.host, "rejoin"], body))
        .await?;
    if answer.status != StatusCode::ACCEPTED {
        say_so_before(session);
        return show_unfenced(session, &answer);
    }
    if !args.wait.wait {
        return show_started(session, &answer);
    }
    let operation: Operation = answer.view()?;
    until_succeeded(session, &operation.id, args.wait.timeout).await?;
    let answer = session
        .client
        .send(Request::get(&["hosts", &operation.host_id]))
        .await?;
    show_unfenced(session, &answer)
}

/// Prints which operation was begun, and how to follow it.
pub fn show_started(session: &mut Session, answer: &Answer) -> Result<(), CliError> {
    session.answer::<Operation>(answer, |screen, operation| {
        let (kind, id, host) = (&operation.kind, &operation.id, operation.host_name());
        screen.line(format!("{host}: {kind} {id} is {}", operation.status))?;
        screen.note(format!("follow it with: ringfence operation watch {id}"));
        Ok(())
    })
}

fn say_so_before(session: &Session) {
    if !session.screen.is_for_programs() {
        session.screen.note(BEGUN_NOTHING);
    }
}

/// Only the host's present state counts: a newer operation may have changed it.
fn show_fenced(session: &mut Session, answer: &Answer) -> Result<(), CliError> {
    let host: Host = answer.view()?;
    if !host.is_fenced() {
        return Err(CliError::NeedsOperator(format!(
            "{} is {} again",
            host.name, host.fencing_state
        )));
    }
    session.answer::<Host>(answer, |screen, host| {
        screen.line(format!("{}: FENCED ({})", host.name, proven_by(&host)))
    })
}

fn show_unfenced(session: &mut Session, answer: &Answer) -> Result<(), CliError> {
    let host: Host = answer.view()?;
    if host.is_fenced() {
        return Err(CliError::NeedsOperator(format!(
            "{} is {} again",
            host.name, host.fencing_state
        )));
    }
    session.answer::<Host>(answer, |screen, host| {
        screen.line(format!("{}: {}", host.name, host.fencing_state))
    })
}
