//! `ringfence host import`: hosts from a file, which is checked as a whole before anything is sent, or from a cloud. A second import
//! changes nothing.

mod cloud;
mod csv_file;
mod entry;
mod known;
mod outcome;
mod send;
mod yaml_file;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::Value;

use self::entry::{Entry, Sheet};
use self::known::known_hosts;
use self::outcome::{Fate, count, show};
use self::send::{How, send};
use crate::client::Client;
use crate::commands::document;
use crate::commands::session::Session;
use crate::error::CliError;

/// The most hosts of one import.
const MOST_HOSTS: usize = 100_000;
const MAX_MIB: u64 = 64;
/// How many errors are shown.
const SHOWN: usize = 100;

/// `ringfence host import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// CSV with a heading (name, segment, type, backend, cloud, known_as, zone, labels.NAME, parameters.METHOD.KEY), or a YAML list of hosts with these keys; -
    /// reads standard input
    #[arg(required_unless_present = "cloud")]
    file: Option<PathBuf>,
    #[command(flatten)]
    cloud: cloud::CloudArgs,
    /// The form of the file; if absent, the name decides: .yaml and .yml are YAML, all others CSV
    #[arg(long, value_enum, conflicts_with = "cloud")]
    format: Option<FileFormat>,
    /// Changes hosts that exist to what the file says; fields that the file does not set stay
    #[arg(long, conflicts_with = "cloud")]
    update: bool,
    /// Shows what would be done, and changes nothing
    #[arg(long)]
    dry_run: bool,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// A heading, then a host per line
    Csv,
    /// A list of mappings
    Yaml,
}

pub async fn import(args: ImportArgs, session: &mut Session) -> Result<(), CliError> {
    let (sheet, known) = match &args.file {
        Some(file) => {
            let mut sheet = read(&args, file)?;
            sheet.check();
            complain(file, &sheet)?;
            check_segments(&session.client, &mut sheet).await?;
            complain(file, &sheet)?;
            let named: HashSet<&str> = sheet.entries.iter().map(|entry| entry.name.as_str()).collect();
            let known = known_hosts(&session.client, |name| named.contains(name)).await?;
            (sheet, known)
        }
        None => {
            let known = known_hosts(&session.client, |_| true).await?;
            let sheet = cloud::sheet(&args.cloud, &known, session).await?;
            (sheet, known)
        }
    };
    let how = How {
        update: args.update,
        dry_run: args.dry_run,
    };
    let hosts = sheet.entries.len();
    let mut outcomes = Vec::with_capacity(hosts);
    let sent = send(session, sheet.entries, &known, how, &mut outcomes).await;
    show(session, &mut outcomes, args.dry_run)?;
    if let Err(error) = sent {
        let left = hosts - outcomes.len();
        session
            .screen
            .note(format!("{left} hosts were not looked at; import them once more"));
        return Err(error);
    }
    match count(&outcomes, Fate::Failed) {
        0 => Ok(()),
        failed => Err(CliError::NotImported { failed }),
    }
}

fn read(args: &ImportArgs, file: &Path) -> Result<Sheet, CliError> {
    let text = document::text(file, MAX_MIB)?;
    let extension = file.extension().and_then(|extension| extension.to_str());
    let is_yaml = match args.format {
        Some(format) => format == FileFormat::Yaml,
        None => matches!(extension, Some("yaml" | "yml")),
    };
    let sheet = if is_yaml {
        yaml_file::read(&text)
    } else {
        csv_file::read(&text)
    };
    if sheet.entries.len() > MOST_HOSTS {
        return Err(CliError::content(
            file,
            format!("holds more than {MOST_HOSTS} hosts"),
        ));
    }
    if sheet.entries.is_empty() && sheet.complaints.is_empty() {
        return Err(CliError::content(file, "holds no host"));
    }
    Ok(sheet)
}

/// The error with every complaint and its line; nothing has been sent.
fn complain(path: &Path, sheet: &Sheet) -> Result<(), CliError> {
    if sheet.complaints.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<_> = sheet.complaints.iter().collect();
    sorted.sort();
    let lines = sorted
        .iter()
        .take(SHOWN)
        .map(|(line, what)| format!("\n  line {line}: {what}"));
    let mut why = format!("nothing was imported:{}", lines.collect::<String>());
    if let Some(more) = sorted.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        why.push_str(&format!("\n  and {more} more"));
    }
    Err(CliError::content(path, why))
}

/// Names and ids of the segments.
async fn known_segments(client: &Client) -> Result<BTreeSet<String>, CliError> {
    let all = client.collect("segments", &[], usize::MAX).await?;
    let segments = all["segments"].as_array().into_iter().flatten();
    let known = segments.flat_map(|segment| [&segment["name"], &segment["id"]]);
    Ok(known.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Complains about segments that do not exist, before anything is sent.
async fn check_segments(client: &Client, sheet: &mut Sheet) -> Result<(), CliError> {
    let known = known_segments(client).await?;
    let missing = |entry: &Entry| {
        let segment = entry.segment().filter(|segment| !known.contains(*segment))?;
        Some((
            entry.line,
            format!("segment: is {segment:?}, and there is no such segment"),
        ))
    };
    let found: Vec<_> = sheet.entries.iter().filter_map(missing).collect();
    sheet.complaints.extend(found);
    Ok(())
}
