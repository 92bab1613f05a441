//! `ringfence operation`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::arguments::{ListArgs, span};
use super::completed::hosts;
use super::follow::until_succeeded;
use super::operation_id::{of_id_or_host, whole};
use super::session::{Session, views};
use crate::client::Request;
use crate::client::view::{Attempt, Moves, Operation, Task};
use crate::error::CliError;
use crate::output::{Cell, Details, Screen, Table, time, time_of_day};

/// More fences than a site has hosts.
const MOST_BRAKED: usize = 100_000;

/// The id of a host.
#[derive(Deserialize)]
struct HostId {
    id: String,
}

/// `ringfence operation ...`
#[derive(Debug, Subcommand)]
pub enum OperationCommand {
    /// Lists operations, the newest first
    List(OperationListArgs),
    /// Shows an operation with its tasks and attempts
    Show {
        /// The operation's id or the beginning of it; or a host, whose live or last operation is shown
        #[arg(value_name = "ID|HOST", add = hosts())]
        id: String,
    },
    /// Shows the result of each workload of an evacuation
    Moves {
        /// The operation's id or the beginning of it; or a host, whose live or last operation is shown
        #[arg(value_name = "ID|HOST", add = hosts())]
        id: String,
    },
    /// Cancels an operation; an attempt that is under way may still be carried out
    Cancel(ReasonArgs),
    /// Restarts operations that need an operator
    Retry(RetryArgs),
    /// Follows an operation to its end
    Watch {
        /// The operation's id or the beginning of it; or a host, whose live or last operation is followed
        #[arg(value_name = "ID|HOST", add = hosts())]
        id: String,
        /// How long to follow at most, as in 30s or 5m
        #[arg(long, value_name = "TIME", value_parser = span)]
        timeout: Option<Duration>,
    },
}

/// `ringfence operation list`
#[derive(Debug, Args)]
pub struct OperationListArgs {
    /// Only operations of this host
    #[arg(long)]
    host: Option<String>,
    /// Only fences, rejoins or evacuations
    #[arg(long, value_parser = ["fence", "rejoin", "evacuation"])]
    kind: Option<String>,
    /// Only operations of this status
    #[arg(long, value_parser = ["running", "held", "needs_operator", "succeeded", "cancelled"])]
    status: Option<String>,
    #[command(flatten)]
    list: ListArgs,
}

/// An operation, and a reason.
#[derive(Debug, Args)]
pub struct ReasonArgs {
    /// The operation's id, or the beginning of it
    id: String,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
}

/// `ringfence operation retry`
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The operations' ids, or the beginnings of them
    #[arg(required_unless_present = "held_by_brake", num_args = 1..)]
    ids: Vec<String>,
    /// All fences that the storm brake holds
    #[arg(long, conflicts_with = "ids")]
    held_by_brake: bool,
    /// Only the fences of hosts in this segment
    #[arg(long, requires = "held_by_brake")]
    segment: Option<String>,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
}

pub async fn run(command: OperationCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        OperationCommand::List(args) => list(args, session).await,
        OperationCommand::Show { id } => {
            let id = of_id_or_host(session, &id).await?;
            session.show(Request::get(&["operations", &id]), show).await
        }
        OperationCommand::Moves { id } => {
            let id = of_id_or_host(session, &id).await?;
            show_moves(&id, session).await
        }
        OperationCommand::Cancel(args) => ask(args, "cancel", session).await,
        OperationCommand::Retry(args) => retry(args, session).await,
        OperationCommand::Watch { id, timeout } => {
            let id = of_id_or_host(session, &id).await?;
            watch(&id, timeout, session).await
        }
    }
}

async fn list(args: OperationListArgs, session: &mut Session) -> Result<(), CliError> {
    let query = vec![("host", args.host), ("kind", args.kind), ("status", args.status)];
    session.list("operations", query, &args.list, table).await
}

async fn ask(args: ReasonArgs, verb: &str, session: &mut Session) -> Result<(), CliError> {
    let id = whole(session, &args.id).await?;
    let request = Request::post(&["operations", &id, verb], json!({"reason": args.reason}));
    session
        .show(request, |screen, operation| screen.line(summary(&operation)))
        .await
}

async fn retry(args: RetryArgs, session: &mut Session) -> Result<(), CliError> {
    let ids = if args.held_by_brake {
        held_by_brake(args.segment.as_deref(), session).await?
    } else {
        args.ids
    };
    if ids.is_empty() {
        return session.screen.done("the storm brake holds no fences".to_owned());
    }
    for id in ids {
        let reason = args.reason.clone();
        ask(ReasonArgs { id, reason }, "retry", session).await?;
    }
    Ok(())
}

/// The fences that the storm brake holds, the oldest first.
async fn held_by_brake(segment: Option<&str>, session: &Session) -> Result<Vec<String>, CliError> {
    let some = |word: &str| Some(word.to_owned());
    let query = [
        ("kind", some("fence")),
        ("status", some("needs_operator")),
        ("sort", some("created_at:asc")),
    ];
    let all = session.client.collect("operations", &query, MOST_BRAKED).await?;
    let held = views::<Operation>(&all, "operations")?
        .into_iter()
        .filter(|operation| operation.is_held_by_brake);
    let Some(segment) = segment else {
        return Ok(held.map(|operation| operation.id).collect());
    };
    let query = [("segment", some(segment))];
    let all = session.client.collect("hosts", &query, MOST_BRAKED).await?;
    let hosts: BTreeSet<String> = views::<HostId>(&all, "hosts")?
        .into_iter()
        .map(|host| host.id)
        .collect();
    let is_there = |operation: &Operation| hosts.contains(&operation.host_id);
    Ok(held.filter(is_there).map(|operation| operation.id).collect())
}

async fn watch(id: &str, timeout: Option<Duration>, session: &mut Session) -> Result<(), CliError> {
    let operation = until_succeeded(session, id, timeout).await?;
    if session.screen.is_for_programs() {
        return session
            .show::<Operation>(Request::get(&["operations", id]), |_, _| Ok(()))
            .await;
    }
    session.screen.line(summary(&operation))
}

/// Shows the result of each workload.
pub async fn show_moves(id: &str, session: &mut Session) -> Result<(), CliError> {
    let request = Request::get(&["operations", id, "moves"]);
    session
        .show::<Moves>(request, |screen, moves| screen.table(moves_table(&moves)))
        .await
}

fn moves_table(moves: &Moves) -> Table {
    let mut table = Table::new(&[
        "WORKLOAD", "OWNER", "ID", "WAS", "STATUS", "FROM", "TO", "TRIES", "BEGAN", "ENDED", "REQUEST",
        "DETAIL",
    ]);
    for workload in &moves.moves {
        table.row([
            workload.name.as_str().into(),
            Cell::maybe(workload.owner.clone()),
            workload.id.as_str().into(),
            workload.state.as_str().into(),
            Cell::word(&workload.status),
            Cell::maybe(workload.from.clone()),
            Cell::maybe(workload.to.clone()),
            workload.attempts.to_string().into(),
            Cell::maybe(workload.started_at.map(time_of_day)),
            Cell::maybe(workload.ended_at.map(time_of_day)),
            Cell::maybe(workload.request_id.clone()),
            workload.detail.as_deref().unwrap_or_default().into(),
        ]);
    }
    table
}

fn summary(operation: &Operation) -> String {
    let (host, kind, id) = (operation.host_name(), &operation.kind, &operation.id);
    let why = if operation.detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", operation.detail)
    };
    format!("{host}: {kind} {id} {}{why}", operation.status)
}

fn table(operations: &[Operation]) -> Table {
    let mut table = Table::new(&["ID", "HOST", "KIND", "STATUS", "GENERATION", "BEGAN", "DETAIL"])
        .and_wide(&["ENDED", "PLAN", "REQUESTED BY", "REASON"]);
    for operation in operations {
        table.row([
            operation.id.as_str().into(),
            operation.host_name().into(),
            operation.kind.as_str().into(),
            Cell::word(&operation.status),
            operation.generation.to_string().into(),
            Cell::maybe(operation.created_at.map(time)),
            operation.detail.as_str().into(),
            Cell::maybe(operation.finished_at.map(time)),
            Cell::maybe(operation.plan.clone()),
            operation.requested_by.as_str().into(),
            operation.reason.as_str().into(),
        ]);
    }
    table
}

fn show(screen: &mut Screen, operation: Operation) -> Result<(), CliError> {
    let proofs = operation
        .proofs
        .iter()
        .map(|proof| format!("{} by {}", proof.kind, proof.source));
    let rounds = (operation.round > 0).then(|| operation.round.to_string());
    let details = Details::default()
        .with("operation", &operation.id)
        .with("host", operation.host_name())
        .with("kind", &operation.kind)
        .with_word("status", &operation.status, "")
        .with_some("detail", Some(&operation.detail))
        .with("generation", operation.generation.to_string())
        .with("reason", &operation.reason)
        .with("requested by", &operation.requested_by)
        .with_some("plan", operation.plan.as_deref())
        .with_some("restarts", rounds)
        .with_some("starts again", operation.restart_at.map(time))
        .with_some("began", operation.created_at.map(time))
        .with_some("ended", operation.finished_at.map(time))
        .with_some("proofs", Some(proofs.collect::<Vec<_>>().join(", ")));
    screen.details(details)?;
    screen.line("")?;
    screen.table(tasks(&operation))
}

/// The task's kind, and the workload if it is for one.
fn name(task: &Task) -> String {
    match &task.workload {
        Some(workload) => format!("{} {workload}", task.kind),
        None => task.kind.clone(),
    }
}

/// One row per attempt, and one for each task without attempts.
fn tasks(operation: &Operation) -> Table {
    let mut table = Table::new(&[
        "STAGE", "TASK", "STATUS", "ATTEMPT", "LEVEL", "METHOD", "WORKER", "OUTCOME", "SEEN", "BEGAN",
        "TOOK", "DETAIL",
    ]);
    for (stage, task) in operation
        .stages
        .iter()
        .enumerate()
        .flat_map(|(at, stage)| stage.tasks.iter().map(move |task| (at + 1, task)))
    {
        let mut row = |attempt: Option<&Attempt>| {
            let detail = attempt
                .and_then(|attempt| attempt.detail.clone())
                .or_else(|| task.detail.clone());
            table.row([
                stage.to_string().into(),
                name(task).into(),
                Cell::word(&task.status),
                Cell::maybe(attempt.map(|attempt| attempt.number.to_string())),
                Cell::maybe(
                    attempt
                        .and_then(|attempt| attempt.level)
                        .map(|level| level.to_string()),
                ),
                Cell::maybe(attempt.map(|attempt| format!("{} ({})", attempt.method, attempt.driver))),
                Cell::maybe(attempt.and_then(|attempt| attempt.worker.clone())),
                Cell::word(attempt.map_or("-", |attempt| {
                    attempt.outcome.as_deref().unwrap_or(&attempt.status)
                })),
                Cell::maybe(attempt.and_then(|attempt| Some(attempt.observation.as_ref()?.state.clone()))),
                Cell::maybe(attempt.and_then(|attempt| attempt.started_at.map(time_of_day))),
                Cell::maybe(attempt.and_then(took)),
                detail.unwrap_or_default().into(),
            ]);
        };
        if task.attempts.is_empty() {
            row(None);
        }
        task.attempts.iter().for_each(|attempt| row(Some(attempt)));
    }
    table
}

fn took(attempt: &Attempt) -> Option<String> {
    let ms = (attempt.ended_at? - attempt.started_at?).num_milliseconds();
    Some(format!("{ms} ms"))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn attempts_stand_under_their_tasks() {
        let operation: Operation = from_value(json!({
            "id": "op", "host_id": "h", "host": "c1", "kind": "fence", "status": "running", "generation": 2,
            "stages": [
                {"delay_s": 0, "tasks": [{"kind": "power.off", "status": "confirmed", "attempts": [
                    {"number": 1, "level": 1, "method": "bmc", "driver": "ipmi", "worker": "w1", "status": "ended",
                     "outcome": "confirmed", "observation": {"state": "off", "detail": ""},
                     "started_at": "2026-01-31T12:00:00.5Z", "ended_at": "2026-01-31T12:00:01.75Z"}]}]},
                {"delay_s": 0, "tasks": [{"kind": "power.on", "status": "pending"}]},
            ],
        }))
        .unwrap();
        let text = tasks(&operation).render(None, false, false);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1],
            [
                "1",
                "power.off",
                "confirmed",
                "1",
                "1",
                "bmc",
                "(ipmi)",
                "w1",
                "confirmed",
                "off",
                "12:00:00.500Z",
                "1250",
                "ms"
            ]
        );
        assert_eq!(
            lines[2],
            ["2", "power.on", "pending", "-", "-", "-", "-", "-", "-", "-", "-"]
        );
    }
}
