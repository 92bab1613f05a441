//! A person removes a source that reports no more.

use clap::Args;
use serde_json::json;

use super::super::completed::hosts;
use super::super::session::Session;
use crate::client::Request;
use crate::client::view::Host;
use crate::error::CliError;

/// `ringfence host forget-source`
#[derive(Debug, Args)]
pub struct ForgetSourceArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// The source, as `host show` names it
    source: String,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
}

/// `ringfence host forget-source`
pub async fn forget_source(args: ForgetSourceArgs, session: &mut Session) -> Result<(), CliError> {
    let path = ["hosts", &args.host, "sources", &args.source];
    let request = Request::delete(&path).saying(json!({"reason": args.reason}));
    session
        .show::<Host>(request, |screen, host| {
            screen.line(format!(
                "{}: {} is forgotten; the host is seen {}",
                host.name, args.source, host.failure_state
            ))
        })
        .await
}
