//! An admin confirms that applied fencing was released by hand.

use clap::Args;
use serde_json::json;

use super::super::completed::hosts;
use super::super::session::Session;
use crate::client::Request;
use crate::client::view::Host;
use crate::error::CliError;

/// `ringfence host confirm-released`
#[derive(Debug, Args)]
pub struct ConfirmReleasedArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// The generation that the admin looked at; `host show` prints it
    #[arg(long, short)]
    generation: u32,
    /// A method of the applied fencing, as `host show` names it; may be repeated
    #[arg(long, short, required = true)]
    method: Vec<String>,
    /// How the fencing was released, or why the device is gone; goes into the audit trail
    #[arg(long, short)]
    reason: String,
}

/// `ringfence host confirm-released`
pub async fn confirm_released(args: ConfirmReleasedArgs, session: &mut Session) -> Result<(), CliError> {
    let body = json!({"generation": args.generation, "methods": args.method, "reason": args.reason});
    let request = Request::post(&["hosts", &args.host, "confirm-released"], body);
    session
        .show::<Host>(request, |screen, host| {
            let left: Vec<&str> = host.applied_fencing.iter().map(|s| s.method.as_str()).collect();
            let left = if left.is_empty() {
                "nothing".to_owned()
            } else {
                left.join(", ")
            };
            screen.line(format!(
                "{}: {}; still to be released: {left}",
                host.name, host.fencing_state
            ))
        })
        .await
}
