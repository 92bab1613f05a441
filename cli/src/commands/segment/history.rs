//! `ringfence segment history`: the versions of a segment, as the audit trail keeps them.

use clap::Args;
use ringfence_core::{FieldChange, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Request;
use crate::commands::completed::segments;
use crate::commands::session::Session;
use crate::error::CliError;
use crate::output::{Table, time};

/// The longest page of the API.
const PAGE: u32 = 1000;
/// How many changes the table shows of a version.
const MAX_CHANGES: usize = 6;

/// `ringfence segment history`
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Name or id; a deleted segment is found by its last name
    #[arg(add = segments())]
    segment: String,
    /// How many to list at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// A line of the audit trail about a segment.
#[derive(Debug, Deserialize)]
struct Line {
    at: Timestamp,
    actor: String,
    action: String,
    target: Option<String>,
    detail: Detail,
}

#[derive(Debug, Deserialize)]
struct Detail {
    segment_id: String,
    revision: u64,
    segment: Value,
    changes: Option<Vec<FieldChange>>,
}

/// A version of a segment.
#[derive(Debug, Serialize)]
pub struct Version {
    revision: u64,
    at: Timestamp,
    actor: String,
    action: String,
    changes: Vec<FieldChange>,
    /// The whole of it, as a document has it.
    pub segment: Value,
}

pub async fn run(args: HistoryArgs, session: &mut Session) -> Result<(), CliError> {
    let limit = args.limit as usize;
    let mut found = Vec::new();
    versions(&args.segment, session, |version| {
        found.push(version);
        found.len() < limit
    })
    .await?;
    if found.is_empty() {
        let name = &args.segment;
        return Err(CliError::Missing(format!(
            "the audit trail has no segment {name:?}"
        )));
    }
    if session.screen.is_for_programs() {
        return session.screen.data(&json!({ "versions": found }));
    }
    session.screen.table(table(&found))
}

/// The newest version with this revision.
pub async fn version(segment: &str, revision: u64, session: &Session) -> Result<Version, CliError> {
    let mut found = None;
    versions(segment, session, |version| {
        found = Some(version).filter(|version| version.revision == revision);
        found.is_none()
    })
    .await?;
    found.ok_or_else(|| {
        CliError::Missing(format!(
            "the audit trail has no revision {revision} of segment {segment:?}\n  ringfence segment history {segment} lists those that it has"
        ))
    })
}

/// Gives the versions of a segment to `take`, the newest first, until it returns false.
async fn versions(
    segment: &str,
    session: &Session,
    mut take: impl FnMut(Version) -> bool,
) -> Result<(), CliError> {
    let mut id = id_of(segment, session).await?;
    let query = [
        ("action", Some("segment.".to_owned())),
        ("limit", Some(PAGE.to_string())),
    ];
    let mut is_wanted = move |line: &Line| match &id {
        Some(id) => line.detail.segment_id == *id,
        None => {
            let is_last = line.target.as_deref() == Some(segment) || line.detail.segment_id == segment;
            id = is_last.then(|| line.detail.segment_id.clone());
            is_last
        }
    };
    let page = |lines: Vec<Value>| {
        // A line of another form is about something else.
        let lines = lines.into_iter().filter_map(|line| Line::deserialize(line).ok());
        let mut wanted = lines.filter(|line| is_wanted(line)).map(Version::from);
        Ok(wanted.all(&mut take))
    };
    session.client.each_page(&["audit"], &query, page).await
}

/// The id of a segment; `None` where it is gone.
async fn id_of(segment: &str, session: &Session) -> Result<Option<String>, CliError> {
    match session.client.send(Request::get(&["segments", segment])).await {
        Ok(answer) => Ok(answer.body["id"].as_str().map(ToOwned::to_owned)),
        Err(CliError::Api(fault)) if fault.is_not_found() => Ok(None),
        Err(other) => Err(other),
    }
}

impl From<Line> for Version {
    fn from(line: Line) -> Self {
        Self {
            revision: line.detail.revision,
            at: line.at,
            actor: line.actor,
            action: line.action,
            changes: line.detail.changes.unwrap_or_default(),
            segment: line.detail.segment,
        }
    }
}

fn table(versions: &[Version]) -> Table {
    let mut table = Table::new(&["REVISION", "AT", "ACTOR", "ACTION", "CHANGES"]);
    for version in versions {
        table.row([
            version.revision.to_string().into(),
            time(version.at).into(),
            version.actor.as_str().into(),
            version.action.as_str().into(),
            changes(&version.changes).into(),
        ]);
    }
    table
}

fn changes(changes: &[FieldChange]) -> String {
    let shown = changes.iter().take(MAX_CHANGES);
    let mut words: Vec<String> = shown
        .map(|FieldChange { field, from, to }| format!("{field}: {from} -> {to}"))
        .collect();
    if changes.len() > MAX_CHANGES {
        words.push(format!("{} more", changes.len() - MAX_CHANGES));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    #[test]
    fn a_version_shows_what_was_new_in_it() {
        let change = |field: &str| json!({"field": field, "from": 5, "to": 3});
        let line = |revision: u64, changes: Value| -> Version {
            let line: Line = from_value(json!({
                "at": "2026-01-31T12:00:00Z", "actor": "alice", "action": "segment.updated", "target": "rack-1",
                "detail": {"segment_id": "s", "revision": revision, "segment": {"name": "rack-1"}, "changes": changes},
            }))
            .unwrap();
            line.into()
        };
        let many: Vec<Value> = (0..8).map(|at| change(&format!("f{at}"))).collect();
        let text = table(&[
            line(3, many.into()),
            line(2, json!([change("policy.restarts")])),
            line(1, Value::Null),
        ])
        .render(None, false, false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("3 ") && lines[1].ends_with("f5: 5 -> 3, 2 more"),
            "{text}"
        );
        assert!(
            lines[2].ends_with("alice  segment.updated  policy.restarts: 5 -> 3"),
            "{text}"
        );
        assert!(lines[3].trim_end().ends_with("segment.updated"), "{text}");
    }
}
