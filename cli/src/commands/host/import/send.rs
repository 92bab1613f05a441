//! Sends hosts to the service: new hosts many at a time, hosts that exist one by one.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::{Entry, Wish};
use super::outcome::{Fate, Outcome};
use crate::client::view::Host;
use crate::client::{ApiFault, Request};
use crate::commands::session::Session;
use crate::error::CliError;

/// The most hosts, and about the most bytes, of one request.
const MOST_HOSTS: usize = 1_000;
const MOST_BYTES: usize = 1024 * 1024;
/// How many hosts are changed or removed at a time.
const AT_ONCE: usize = 8;

/// How hosts are sent.
#[derive(Clone, Copy)]
pub struct How {
    /// Whether hosts that exist are changed.
    pub update: bool,
    /// Whether nothing is sent.
    pub dry_run: bool,
}

/// A host to send, and its position among all.
type Placed = (usize, Entry);

/// Sends all hosts, and adds their results to `outcomes`. An error means that the service is away or refuses the caller, and the remaining
/// hosts were not sent.
pub async fn send(
    session: &Session,
    entries: Vec<Entry>,
    known: &HashMap<String, Host>,
    how: How,
    outcomes: &mut Vec<Outcome>,
) -> Result<(), CliError> {
    let (mut new, mut others) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for (at, entry) in entries.into_iter().enumerate() {
        let entry = match decide(at, entry, known, how) {
            Decided::Already(outcome) => {
                outcomes.push(outcome);
                continue;
            }
            Decided::Other(entry) => {
                others.push((at, entry));
                continue;
            }
            Decided::New(entry) => entry,
        };
        let body = entry.body();
        bytes += body.to_string().len();
        new.push(((at, entry), body));
        if new.len() == MOST_HOSTS || bytes >= MOST_BYTES {
            outcomes.extend(add(session, std::mem::take(&mut new)).await?);
            bytes = 0;
        }
    }
    if !new.is_empty() {
        outcomes.extend(add(session, new).await?);
    }
    let mut sending = stream::iter(others)
        .map(|other| change(session, other, known))
        .buffer_unordered(AT_ONCE);
    while let Some(outcome) = sending.next().await {
        outcomes.push(outcome?);
    }
    Ok(())
}

enum Decided {
    /// Nothing has to be sent.
    Already(Outcome),
    /// The host has to be added.
    New(Entry),
    /// The host has to be changed or removed.
    Other(Entry),
}

fn decide(at: usize, entry: Entry, known: &HashMap<String, Host>, how: How) -> Decided {
    let already = |entry, fate, detail: String| Decided::Already(Outcome::of(at, entry, fate, detail));
    match &entry.wish {
        Wish::Here => {}
        Wish::Barred(why) => {
            let why = why.clone();
            return already(entry, Fate::Failed, why);
        }
        Wish::Gone if how.dry_run => return already(entry, Fate::Removed, String::new()),
        Wish::Gone => return Decided::Other(entry),
    }
    let Some(host) = known.get(&entry.name) else {
        return match how.dry_run {
            true => already(entry, Fate::Added, String::new()),
            false => Decided::New(entry),
        };
    };
    let changes = names(&entry, host);
    if changes.is_empty() {
        already(entry, Fate::Present, changes)
    } else if !how.update {
        already(entry, Fate::Differs, changes)
    } else if how.dry_run {
        already(entry, Fate::Updated, changes)
    } else {
        Decided::Other(entry)
    }
}

/// The names of the fields that differ.
fn names(entry: &Entry, host: &Host) -> String {
    let changes = entry.changes(host);
    changes.keys().cloned().collect::<Vec<_>>().join(", ")
}

/// The service's answer about one host of many.
#[derive(Deserialize)]
struct Answered {
    hosts: Vec<AnsweredHost>,
}

#[derive(Deserialize)]
struct AnsweredHost {
    name: Option<String>,
    status: u16,
    errors: Value,
}

impl AnsweredHost {
    /// Why the host was refused.
    fn why(&self) -> Option<String> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let errors = json!({ "errors": self.errors }).to_string();
        (!status.is_success()).then(|| ApiFault::read(status, errors.as_bytes()).to_string())
    }
}

/// Adds hosts by one request with an idempotency key, so that it can be repeated.
async fn add(session: &Session, new: Vec<(Placed, Value)>) -> Result<Vec<Outcome>, CliError> {
    let (entries, bodies): (Vec<Placed>, Vec<Value>) = new.into_iter().unzip();
    let request = Request::post(&["bulk", "hosts"], json!({ "hosts": bodies })).once();
    let answer = session
        .client
        .send_patiently(request, |wait| session.screen.note(wait))
        .await?;
    let answered: Answered = answer.view()?;
    let answered = answered.hosts.into_iter();
    let mut answered: HashMap<String, AnsweredHost> = answered
        .filter_map(|host| Some((host.name.clone()?, host)))
        .collect();
    let outcome = |(at, entry): Placed| {
        let why = match answered.remove(&entry.name) {
            Some(host) => host.why(),
            None => Some("the answer of the service was lost; import the host again".to_owned()),
        };
        Outcome::unless(at, entry, Fate::Added, String::new(), why)
    };
    Ok(entries.into_iter().map(outcome).collect())
}

/// Changes or removes one host.
async fn change(
    session: &Session,
    (at, entry): Placed,
    known: &HashMap<String, Host>,
) -> Result<Outcome, CliError> {
    if entry.wish == Wish::Gone {
        let request = Request::delete(&["hosts", &entry.name]);
        let sent = session
            .client
            .send_patiently(request, |wait| session.screen.note(wait))
            .await;
        let why = told(sent.map(drop))?;
        return Ok(Outcome::unless(at, entry, Fate::Removed, String::new(), why));
    }
    let changed = known.get(&entry.name).map(|host| names(&entry, host));
    let why = told(update(session, &entry).await)?;
    Ok(Outcome::unless(
        at,
        entry,
        Fate::Updated,
        changed.unwrap_or_default(),
        why,
    ))
}

/// Reads the host before the change, so that no change of another client is lost.
async fn update(session: &Session, entry: &Entry) -> Result<(), CliError> {
    let tell = |wait| session.screen.note(wait);
    let client = &session.client;
    let request = Request::get(&["hosts", &entry.name]);
    let answer = client.send_patiently(request, tell).await?;
    let changes = entry.changes(&answer.view()?);
    let request = Request::patch(&["hosts", &entry.name], changes.into()).if_match(answer.etag);
    client.send_patiently(request, tell).await.map(drop)
}

/// Why the service refused the change; an error that would hit every host is returned as one.
fn told(sent: Result<(), CliError>) -> Result<Option<String>, CliError> {
    match sent {
        Ok(()) => Ok(None),
        Err(CliError::Api(fault)) if fault.is_of_this_request() => Ok(Some(fault.to_string())),
        Err(error) => Err(error),
    }
}
