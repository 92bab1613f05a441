//! `ringfence segment export`: segments as documents that `ringfence segment apply` takes.

use clap::Args;
use serde_json::Value;

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
}

pub async fn run(args: ExportArgs, session: &mut Session) -> Result<(), CliError> {
    let segments = if args.segments.is_empty() {
        all(session).await?
    } else {
        named(&args.segments, session).await?
    };
    let documents: Vec<String> = segments.iter().map(document).collect();
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
