//! `ringfence segment export`: segments as documents that `ringfence segment apply` takes.

use clap::Args;
use serde_json::Value;

use super::history::version;
use super::writing::document;
use crate::client::Request;
use crate::commands::completed::segments;
use crate::commands::session::Session;
use crate::error::CliError;

/// `ringfence segment export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Names or ids; without one, all segments
    #[arg(add = segments())]
    segments: Vec<String>,
    /// The segment as it was at this revision, from the audit trail (history lists the revisions); for admins
    #[arg(long, value_name = "N", requires = "segments")]
    revision: Option<u64>,
}

pub async fn run(args: ExportArgs, session: &mut Session) -> Result<(), CliError> {
    let segments = match (args.segments.as_slice(), args.revision) {
        ([], _) => all(session).await?,
        ([one], Some(revision)) => vec![version(one, revision, session).await?.segment],
        (_, Some(_)) => return Err(CliError::Usage("--revision takes one segment".to_owned())),
        (names, None) => named(names, session).await?,
    };
    let documents = segments.iter().map(document).collect::<Result<Vec<_>, _>>()?;
    session.screen.text(&documents.join("---\n"))
}

async fn all(session: &Session) -> Result<Vec<Value>, CliError> {
    let answer = session.client.send(Request::get(&["segments"])).await?;
    Ok(answer.body["segments"].as_array().cloned().unwrap_or_default())
}

async fn named(names: &[String], session: &Session) -> Result<Vec<Value>, CliError> {
    let mut found = Vec::new();
    for name in names {
        found.push(session.client.send(Request::get(&["segments", name])).await?.body);
    }
    Ok(found)
}
