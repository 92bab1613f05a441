//! A person's word that a host was fenced by hand (S10). It counts after the settling time of the host's segment.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use serde_json::json;

use super::super::completed::hosts;
use super::super::session::Session;
use super::fence::{WaitArgs, until_fenced};
use super::show::proven_by;
use crate::client::Request;
use crate::client::view::Host;
use crate::error::CliError;
use crate::output::Screen;

/// `ringfence host confirm`
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// The generation that the person looked at; `host show` prints it
    #[arg(long, short)]
    generation: u32,
    /// How the person made certain; goes into the audit trail
    #[arg(long, short)]
    reason: String,
    /// Confirms although the host is seen UP; admins only
    #[arg(long)]
    override_up: bool,
    /// Does not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// `ringfence host confirm`
pub async fn confirm(args: ConfirmArgs, session: &mut Session) -> Result<(), CliError> {
    if !args.yes {
        let host: Host = session
            .client
            .send(Request::get(&["hosts", &args.host]))
            .await?
            .view()?;
        ask(session, &host)?;
    }
    let body = json!({"generation": args.generation, "reason": args.reason, "override_up": args.override_up});
    let request = Request::post(&["hosts", &args.host, "confirm-fenced"], body);
    let mut answer = session.client.send(request).await?;
    let host: Host = answer.view()?;
    if let (false, true, Some(fence)) = (host.is_fenced(), args.wait.is_wanted(), &host.operation) {
        until_fenced(session, &fence.id, args.wait.timeout()).await?;
        answer = session.client.send(Request::get(&["hosts", &host.id])).await?;
    }
    session.answer::<Host>(&answer, show)
}

fn show(screen: &mut Screen, host: Host) -> Result<(), CliError> {
    if host.is_fenced() {
        return screen.line(format!("{}: FENCED ({})", host.name, proven_by(&host)));
    }
    screen.line(format!(
        "{}: still {}; the confirmation is recorded, and the host becomes FENCED when the confirmation has settled",
        host.name, host.fencing_state
    ))?;
    if let Some(fence) = &host.operation {
        screen.note(format!("follow it with: ringfence operation watch {}", fence.id));
    }
    Ok(())
}

fn ask(session: &Session, host: &Host) -> Result<(), CliError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CliError::Usage(
            "standard input is no terminal, so the command cannot ask; confirm with --yes".to_owned(),
        ));
    }
    session.screen.note(format!(
        "{} is seen {}, generation {}.",
        host.name, host.failure_state, host.generation
    ));
    session
        .screen
        .note("If it still runs or writes, its workloads will run twice and destroy their data.");
    session
        .screen
        .note(format!("Type {} to say that it is off and stays off:", host.name));
    let mut typed = String::new();
    stdin.lock().read_line(&mut typed)?;
    if typed.trim() == host.name {
        Ok(())
    } else {
        Err(CliError::Usage(
            "the typed name differs; nothing was confirmed".to_owned(),
        ))
    }
}
