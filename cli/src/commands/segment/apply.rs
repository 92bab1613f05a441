//! `ringfence segment apply` and `ringfence segment diff`: segments become what their documents say.

use std::path::{Path, PathBuf};

use clap::Args;
use ringfence_core::{FieldChange, SegmentDraft, SegmentPolicy};
use serde::Deserialize;
use serde_json::{Value, json, to_value};

use super::document::{self, Document};
use super::fault;
use crate::client::Request;
use crate::commands::document::text;
use crate::commands::session::Session;
use crate::error::CliError;

/// The largest file, in MiB.
const MAX_FILE_MIB: u64 = 1;

/// `ringfence segment apply`
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    documents: FileArgs,
    /// Says what would be done, and does nothing
    #[arg(long)]
    dry_run: bool,
}

/// The documents.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// One or more segments as YAML, each the whole of a segment: a key that is left out takes its default; - reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
}

/// A document, and the segment as it is.
struct Step {
    document: Document,
    /// The segment's id and entity tag; `None` where there is none.
    known: Option<(String, Option<String>)>,
    /// From the segment as it is, or from the defaults.
    changes: Vec<FieldChange>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    New,
    Different,
    Equal,
}

impl Step {
    fn outcome(&self) -> Outcome {
        match &self.known {
            None => Outcome::New,
            Some(_) if self.changes.is_empty() => Outcome::Equal,
            Some(_) => Outcome::Different,
        }
    }
}

/// Writes what differs.
pub async fn apply(args: ApplyArgs, session: &mut Session) -> Result<(), CliError> {
    let path = &args.documents.file;
    let steps = steps(path, session).await?;
    let mut told = Vec::new();
    let mut done = Ok(());
    for step in &steps {
        if !args.dry_run {
            done = write(step, path, session).await;
        }
        if done.is_err() {
            break;
        }
        tell(step, in_words(step.outcome(), args.dry_run), &mut told, session)?;
    }
    show_all(told, session)?;
    done
}

/// Shows what differs.
pub async fn diff(args: FileArgs, session: &mut Session) -> Result<(), CliError> {
    let steps = steps(&args.file, session).await?;
    let mut told = Vec::new();
    for step in &steps {
        tell(step, in_words(step.outcome(), true), &mut told, session)?;
    }
    show_all(told, session)?;
    if steps.iter().all(|step| step.outcome() == Outcome::Equal) {
        Ok(())
    } else {
        Err(CliError::Differs)
    }
}

fn in_words(outcome: Outcome, is_dry: bool) -> &'static str {
    match (outcome, is_dry) {
        (Outcome::New, false) => "created",
        (Outcome::New, true) => "would be created",
        (Outcome::Different, false) => "changed",
        (Outcome::Different, true) => "would be changed",
        (Outcome::Equal, _) => "unchanged",
    }
}

fn tell(step: &Step, outcome: &str, told: &mut Vec<Value>, session: &mut Session) -> Result<(), CliError> {
    let name = &step.document.segment.name;
    if session.screen.is_for_programs() {
        told.push(json!({ "name": name, "outcome": outcome, "changes": step.changes }));
        return Ok(());
    }
    session.screen.line(format!("{name}: {outcome}"))?;
    for FieldChange { field, from, to } in &step.changes {
        session.screen.line(format!("  {field}: {from} -> {to}"))?;
    }
    Ok(())
}

fn show_all(told: Vec<Value>, session: &mut Session) -> Result<(), CliError> {
    if session.screen.is_for_programs() {
        session.screen.data(&json!({ "segments": told }))?;
    }
    Ok(())
}

/// Reads and checks all documents, and what there is in their places. Nothing is written before.
async fn steps(path: &Path, session: &Session) -> Result<Vec<Step>, CliError> {
    let documents = documents(path)?;
    check(&documents, path, session).await?;
    let mut steps = Vec::new();
    for document in documents {
        steps.push(step(document, session).await?);
    }
    Ok(steps)
}

/// The documents of a file. What the service alone knows is not checked.
pub fn documents(path: &Path) -> Result<Vec<Document>, CliError> {
    let text = text(path, MAX_FILE_MIB)?;
    let documents = document::read(&text).map_err(|faults| faulty(path, &faults))?;
    if documents.is_empty() {
        let why = "holds no document; a segment as `ringfence segment export` prints it is allowed";
        return Err(CliError::content(path, why));
    }
    Ok(documents)
}

/// The documents of a file, checked by the service as well; nothing is written.
pub async fn checked(path: &Path, session: &Session) -> Result<Vec<SegmentDraft>, CliError> {
    let documents = documents(path)?;
    check(&documents, path, session).await?;
    Ok(documents.into_iter().map(|document| document.segment).collect())
}

fn faulty(path: &Path, faults: &[fault::Fault]) -> CliError {
    CliError::Documents(fault::told(path, faults))
}

/// Has the service check what it alone knows.
async fn check(documents: &[Document], path: &Path, session: &Session) -> Result<(), CliError> {
    let mut faults = Vec::new();
    for document in documents {
        let request = Request::post(&["segment-check"], body(&document.segment));
        match session.client.send(request).await {
            Ok(_) => {}
            Err(error) => faults.extend(faults_of(document, error)?),
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faulty(path, &faults))
    }
}

/// The faults that the service found in a document; any other error stays one.
fn faults_of(document: &Document, error: CliError) -> Result<Vec<fault::Fault>, CliError> {
    match error {
        CliError::Api(found) if found.is_of_fields() => Ok(found
            .details()
            .map(|detail| document.fault_of_service(detail))
            .collect()),
        other => Err(other),
    }
}

fn body(segment: &SegmentDraft) -> Value {
    to_value(segment).unwrap_or_default()
}

async fn step(document: Document, session: &Session) -> Result<Step, CliError> {
    let wanted = &document.segment;
    let asked = session
        .client
        .send(Request::get(&["segments", &wanted.name]))
        .await;
    let (known, changes) = match asked {
        Ok(answer) => {
            let changes = as_it_is(&answer.body)?.changes(wanted);
            let id = answer.body["id"].as_str().unwrap_or(&wanted.name).to_owned();
            (Some((id, answer.etag)), changes)
        }
        Err(CliError::Api(fault)) if fault.is_not_found() => (None, untouched(&wanted.name).changes(wanted)),
        Err(other) => return Err(other),
    };
    Ok(Step {
        document,
        known,
        changes,
    })
}

/// The segment in an answer. A field that this program does not know is an error: it would be lost.
pub fn as_it_is(body: &Value) -> Result<SegmentDraft, CliError> {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|key, _| super::KEYS.contains(&key.as_str()));
    }
    SegmentDraft::deserialize(body).map_err(|error| CliError::Answer {
        url: "/segments".to_owned(),
        why: error.to_string(),
    })
}

/// A segment with nothing but its name.
fn untouched(name: &str) -> SegmentDraft {
    SegmentDraft {
        name: name.to_owned(),
        description: String::new(),
        policy: SegmentPolicy::default(),
    }
}

/// Writes a segment where it differs, and only in the place of what was compared.
async fn write(step: &Step, path: &Path, session: &Session) -> Result<(), CliError> {
    let segment = &step.document.segment;
    let request = match &step.known {
        Some(_) if step.changes.is_empty() => return Ok(()),
        Some((id, etag)) => Request::put(&["segments", id], body(segment)).if_match(etag.clone()),
        None => Request::post(&["segments"], body(segment)).once(),
    };
    let Err(error) = session.client.send(request).await else {
        return Ok(());
    };
    Err(match error {
        CliError::Api(fault) if fault.is_changed_meanwhile() => CliError::ChangedMeanwhile {
            segment: segment.name.clone(),
        },
        other => faulty(path, &faults_of(&step.document, other)?),
    })
}
