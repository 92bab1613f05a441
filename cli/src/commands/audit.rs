//! `ringfence audit`.

use clap::{Args, Subcommand};
use ringfence_core::Timestamp;
use serde_json::Value;

use super::arguments::{ListArgs, moment};
use super::session::Session;
use crate::client::view::AuditEntry;
use crate::clock::now;
use crate::error::CliError;
use crate::output::{Cell, Table, fields, time};

/// The longest page of the API.
const PAGE: u32 = 1000;
/// How many characters of the details the table shows; a plan's would fill the screen.
const MAX_DETAIL_CHARS: usize = 120;

/// `ringfence audit ...`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Lists who did what, from where and why, the newest first; for admins
    List(AuditListArgs),
}

/// `ringfence audit list`
#[derive(Debug, Args)]
pub struct AuditListArgs {
    /// Only what concerns this host, by id or name; a deleted host is found by its last name
    #[arg(long)]
    host: Option<String>,
    /// Only what this person, service or worker did
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only actions that begin so, as in operation.
    #[arg(long, value_name = "PREFIX")]
    action: Option<String>,
    /// Only the results of this API request
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Only the results of requests with this global request id of the caller, as Nova sends it
    #[arg(long, value_name = "ID")]
    global_request_id: Option<String>,
    /// Only at this time or later: 2026-01-31T12:00:00Z, or how long ago, as in 30m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse)]
    since: Option<Timestamp>,
    /// Only before this time, in the form of --since
    #[arg(long, value_name = "TIME", value_parser = parse)]
    until: Option<Timestamp>,
    /// How many to list at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

fn parse(text: &str) -> Result<Timestamp, String> {
    moment(text, now())
}

pub async fn run(command: AuditCommand, session: &mut Session) -> Result<(), CliError> {
    let AuditCommand::List(args) = command;
    let rfc3339 = |at: Timestamp| at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
    let query = vec![
        ("host", args.host),
        ("actor", args.actor),
        ("action", args.action),
        ("request_id", args.request_id),
        ("global_request_id", args.global_request_id),
        ("since", args.since.map(rfc3339)),
        ("until", args.until.map(rfc3339)),
        ("limit", Some(args.limit.min(PAGE).to_string())),
    ];
    let list = ListArgs {
        limit: args.limit,
        sort: None,
    };
    session.list("audit", query, &list, table).await
}

fn table(entries: &[AuditEntry]) -> Table {
    let mut table = Table::new(&[
        "AT", "ACTOR", "ORIGIN", "ACTION", "TARGET", "REASON", "DETAIL", "REQUEST",
    ]);
    for entry in entries {
        table.row([
            time(entry.at).into(),
            entry.actor.as_str().into(),
            Cell::maybe(entry.origin.as_deref()),
            entry.action.as_str().into(),
            Cell::maybe(entry.target.as_deref()),
            Cell::maybe(reason(&entry.detail)),
            detail(&entry.detail).into(),
            Cell::maybe(entry.request_id.as_deref()),
        ]);
    }
    table
}

/// The reason. For a confirmation it is the detail of the proof.
fn reason(detail: &Value) -> Option<&str> {
    let proof = &detail["proof"];
    let by_word = (proof["kind"] == "operator").then(|| &proof["detail"]);
    detail.get("reason").or(by_word)?.as_str()
}

fn detail(detail: &Value) -> String {
    let text = fields(detail, &["reason"]);
    match text.char_indices().nth(MAX_DETAIL_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn entry(action: &str, detail: Value) -> AuditEntry {
        from_value(json!({
            "id": 7, "at": "2026-01-31T12:00:00Z", "actor": "alice", "origin": "192.0.2.7", "request_id": "req-1",
            "action": action, "target": "c1", "host_id": "h", "detail": detail,
        }))
        .unwrap()
    }

    #[test]
    fn a_line_says_who_did_what_and_why() {
        let by_word =
            json!({ "proof": { "kind": "operator", "source": "alice", "detail": "pulled the plug" } });
        let text = table(&[
            entry(
                "operation.cancel",
                json!({ "reason": "wrong host", "by": "alice" }),
            ),
            entry("operation.proof", by_word),
            entry("segment.deleted", Value::Null),
        ])
        .render(None, false, false);
        let expected = "\
AT                    ACTOR  ORIGIN     ACTION            TARGET  REASON           DETAIL                   REQUEST
2026-01-31 12:00:00Z  alice  192.0.2.7  operation.cancel  c1      wrong host       by=alice                 req-1
2026-01-31 12:00:00Z  alice  192.0.2.7  operation.proof   c1      pulled the plug  proof=operator by alice  req-1
2026-01-31 12:00:00Z  alice  192.0.2.7  segment.deleted   c1      -                                         req-1
";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_particulars_are_cut() {
        let text = detail(&json!({ "stages": "é".repeat(500) }));
        assert_eq!(text.chars().count(), MAX_DETAIL_CHARS + 1);
    }
}
