//! `ringfence host import`: many hosts from a file, checked whole before anything is sent, or those that a cloud has. Done again, it changes
//! nothing.

mod cloud;
mod csv_file;
mod entry;
mod yaml_file;

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use self::entry::{Entry, Sheet, Wish};
use crate::client::view::Host;
use crate::client::{Client, Request};
use crate::commands::session::Session;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// More hosts than this are not imported at once.
const MOST_HOSTS: usize = 100_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Complaints that are shown.
const SHOWN: usize = 100;
/// Hosts that are sent at the same time.
const AT_ONCE: usize = 8;
/// Rows of a page.
const PAGE: &str = "1000";

/// `ringfence host import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// CSV with a heading (name, segment, type, backend, cloud, known_as, zone, parameters.METHOD.KEY), or a YAML list of hosts with these keys; -
    /// reads standard input
    #[arg(required_unless_present = "cloud")]
    file: Option<PathBuf>,
    #[command(flatten)]
    cloud: cloud::CloudArgs,
    /// What the file is; its name tells if absent: .yaml and .yml are YAML, all others CSV
    #[arg(long, value_enum, conflicts_with = "cloud")]
    format: Option<FileFormat>,
    /// Changes hosts that are there already to what the file says; what it does not mention stays
    #[arg(long, conflicts_with = "cloud")]
    update: bool,
    /// Says what would be done, and does nothing
    #[arg(long)]
    dry_run: bool,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// A heading, then a host per line
    Csv,
    /// A list of mappings
    Yaml,
}

/// What becomes of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Added,
    Updated,
    /// It was there, and its cloud does not have it.
    Removed,
    /// It is there, as the file says.
    Present,
    /// It is there, and the file says something else of it.
    Differs,
    Failed,
}

impl Fate {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Removed => "removed",
            Self::Present => "present",
            Self::Differs => "differs",
            Self::Failed => "failed",
        }
    }
}

struct Outcome<'a> {
    entry: &'a Entry,
    fate: Fate,
    detail: String,
}

/// Does it.
pub async fn import(args: ImportArgs, session: &mut Session) -> Result<(), CliError> {
    let (sheet, hosts) = match &args.file {
        Some(file) => {
            let mut sheet = read(&args, file)?;
            sheet.check();
            complain(file, &sheet)?;
            check_segments(&session.client, &mut sheet).await?;
            complain(file, &sheet)?;
            (sheet, known_hosts(&session.client).await?)
        }
        None => {
            let hosts = known_hosts(&session.client).await?;
            let sheet = cloud::sheet(&args.cloud, &hosts, session).await?;
            (sheet, hosts)
        }
    };
    let sheet = &sheet;
    let client = &session.client;
    let (hosts, args) = (&hosts, &args);
    let mut outcomes: Vec<Outcome<'_>> = Vec::with_capacity(sheet.entries.len());
    let mut broken = None;
    let mut sending = stream::iter(&sheet.entries)
        .map(|entry| async move { bring(client, args, entry, hosts.get(&entry.name)).await })
        .buffered(AT_ONCE);
    while let Some(brought) = sending.next().await {
        match brought {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => {
                // All others would fail the same way.
                broken = Some(error);
                break;
            }
        }
    }
    drop(sending);
    show(session, &outcomes, args.dry_run)?;
    if let Some(error) = broken {
        let left = sheet.entries.len() - outcomes.len();
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
    let text = text(file)?;
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
    let content = |why: String| CliError::Content {
        path: file.to_owned(),
        why,
    };
    if sheet.entries.len() > MOST_HOSTS {
        return Err(content(format!("holds more than {MOST_HOSTS} hosts")));
    }
    if sheet.entries.is_empty() && sheet.complaints.is_empty() {
        return Err(content("holds no host".to_owned()));
    }
    Ok(sheet)
}

fn text(path: &Path) -> Result<String, CliError> {
    let fault = |source| CliError::file("read", path, source);
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(fault)?)
    };
    let mut text = String::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(fault)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(CliError::Content {
            path: path.to_owned(),
            why: "is longer than 64 MiB".to_owned(),
        });
    }
    Ok(text)
}

/// Every complaint with its line; nothing has been sent.
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
    Err(CliError::Content {
        path: path.to_owned(),
        why,
    })
}

async fn known_hosts(client: &Client) -> Result<HashMap<String, Host>, CliError> {
    let all = client
        .collect("hosts", &[("limit", Some(PAGE.to_owned()))], usize::MAX)
        .await?;
    let hosts = Vec::<Host>::deserialize(&all["hosts"]).map_err(|error| CliError::Answer {
        url: "hosts".to_owned(),
        why: error.to_string(),
    })?;
    Ok(hosts.into_iter().map(|host| (host.name.clone(), host)).collect())
}

/// Names and ids.
async fn known_segments(client: &Client) -> Result<BTreeSet<String>, CliError> {
    let all = client.collect("segments", &[], usize::MAX).await?;
    let segments = all["segments"].as_array().into_iter().flatten();
    let known = segments.flat_map(|segment| [&segment["name"], &segment["id"]]);
    Ok(known.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// A segment that is not there would be found out in the middle.
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

/// Adds or changes one host, or says why not. An error means that the service is away or lets nobody in.
async fn bring<'a>(
    client: &Client,
    args: &ImportArgs,
    entry: &'a Entry,
    known: Option<&Host>,
) -> Result<Outcome<'a>, CliError> {
    let outcome = |fate, detail: String| Outcome { entry, fate, detail };
    match &entry.wish {
        Wish::Here => {}
        Wish::Barred(why) => return Ok(outcome(Fate::Failed, why.clone())),
        Wish::Gone if args.dry_run => return Ok(outcome(Fate::Removed, String::new())),
        Wish::Gone => {
            let sent = client.send(Request::delete(&["hosts", &entry.name])).await;
            let why = told(sent.map(drop))?;
            let removed = outcome(Fate::Removed, String::new());
            return Ok(why.map_or(removed, |why| outcome(Fate::Failed, why)));
        }
    }
    let Some(host) = known else {
        if args.dry_run {
            return Ok(outcome(Fate::Added, String::new()));
        }
        let sent = client.send(Request::post(&["hosts"], entry.body())).await;
        return told(sent.map(drop)).map(|why| {
            why.map_or(outcome(Fate::Added, String::new()), |why| {
                outcome(Fate::Failed, why)
            })
        });
    };
    let changes = entry.changes(host);
    if changes.is_empty() {
        return Ok(outcome(Fate::Present, String::new()));
    }
    let names = changes.keys().cloned().collect::<Vec<_>>().join(", ");
    if !args.update {
        return Ok(outcome(Fate::Differs, names));
    }
    if args.dry_run {
        return Ok(outcome(Fate::Updated, names));
    }
    let why = told(update(client, entry).await)?;
    Ok(why.map_or(outcome(Fate::Updated, names), |why| outcome(Fate::Failed, why)))
}

/// Read anew, so that nothing is lost that somebody else has changed meanwhile.
async fn update(client: &Client, entry: &Entry) -> Result<(), CliError> {
    let answer = client.send(Request::get(&["hosts", &entry.name])).await?;
    let changes = entry.changes(&answer.view()?);
    let request = Request::patch(&["hosts", &entry.name], changes.into()).if_match(answer.etag);
    client.send(request).await.map(drop)
}

/// Why the service refused it; what would be the same for every host is an error.
fn told(sent: Result<(), CliError>) -> Result<Option<String>, CliError> {
    match sent {
        Ok(()) => Ok(None),
        Err(CliError::Api(fault)) if fault.is_of_this_request() => Ok(Some(fault.to_string())),
        Err(error) => Err(error),
    }
}

fn count(outcomes: &[Outcome<'_>], fate: Fate) -> usize {
    outcomes.iter().filter(|outcome| outcome.fate == fate).count()
}

/// One of a cloud has none.
fn line(entry: &Entry) -> Option<u64> {
    Some(entry.line).filter(|line| *line > 0)
}

fn show(session: &mut Session, outcomes: &[Outcome<'_>], is_dry: bool) -> Result<(), CliError> {
    if session.screen.is_json() {
        let host = |o: &Outcome<'_>| json!({ "name": o.entry.name, "line": line(o.entry), "result": o.fate.as_str(), "detail": o.detail });
        let hosts: Vec<_> = outcomes.iter().map(host).collect();
        return session.screen.json(&json!({
            "hosts": hosts, "dry_run": is_dry, "added": count(outcomes, Fate::Added), "updated": count(outcomes, Fate::Updated),
            "present": count(outcomes, Fate::Present), "differs": count(outcomes, Fate::Differs),
            "failed": count(outcomes, Fate::Failed), "removed": count(outcomes, Fate::Removed),
        }));
    }
    let mut table = Table::new(&["LINE", "HOST", "RESULT", "DETAIL"]);
    let mut is_empty = true;
    for outcome in outcomes.iter().filter(|outcome| outcome.fate != Fate::Present) {
        is_empty = false;
        table.row([
            Cell::maybe(line(outcome.entry).map(|line| line.to_string())),
            outcome.entry.name.as_str().into(),
            Cell::word(outcome.fate.as_str()),
            Cell::maybe(Some(outcome.detail.as_str()).filter(|detail| !detail.is_empty())),
        ]);
    }
    if !is_empty {
        session.screen.table(table)?;
    }
    let would = if is_dry { "would be " } else { "" };
    let mut line = format!(
        "{would}added: {}, {would}updated: {}, present: {}",
        count(outcomes, Fate::Added),
        count(outcomes, Fate::Updated),
        count(outcomes, Fate::Present)
    );
    let removed = count(outcomes, Fate::Removed);
    if removed > 0 {
        line.push_str(&format!(", {would}removed: {removed}"));
    }
    let (differs, failed) = (count(outcomes, Fate::Differs), count(outcomes, Fate::Failed));
    if differs > 0 {
        line.push_str(&format!(
            ", different and left as they are: {differs} (--update changes them)"
        ));
    }
    if failed > 0 {
        line.push_str(&format!(", failed: {failed}"));
    }
    session.screen.line(line)
}
