//! Starting a FENCED host's workloads elsewhere.

use clap::Args;
use serde_json::json;

use super::super::completed::hosts;
use super::super::follow::until_succeeded;
use super::super::operation::show_moves;
use super::super::session::Session;
use super::fence::{WaitArgs, show_started};
use crate::client::Request;
use crate::client::view::Operation;
use crate::error::CliError;

/// `ringfence host evacuate`
#[derive(Debug, Args)]
pub struct EvacuateArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
    #[command(flatten)]
    wait: WaitArgs,
}

/// `ringfence host evacuate`
pub async fn evacuate(args: EvacuateArgs, session: &mut Session) -> Result<(), CliError> {
    let body = json!({"reason": args.reason});
    let request = Request::post(&["hosts", &args.host, "evacuate"], body);
    let answer = session.client.send(request).await?;
    if !args.wait.is_wanted() {
        return show_started(session, &answer);
    }
    let begun: Operation = answer.view()?;
    let ended = until_succeeded(session, &begun.id, args.wait.timeout()).await;
    // The moves are shown whether all of them succeeded or not.
    show_moves(&begun.id, session).await?;
    ended.map(|_| ())
}
