//! Suspending hosts, segments and everything, and ending that.

use chrono::TimeDelta;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};

use super::arguments::duration;
use super::completed::{hosts, segments};
use super::session::Session;
use crate::client::Request;
use crate::client::view::{Host, SuspendedOne, Suspension, Suspensions};
use crate::error::CliError;
use crate::output::{Screen, Table, time};

/// `ringfence suspend ...`
#[derive(Debug, Subcommand)]
pub enum SuspendCommand {
    /// Suspends a host: nothing begins by itself, and what was asked for before stands still
    Host {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
        #[command(flatten)]
        wish: WishArgs,
    },
    /// Suspends all hosts of a segment
    Segment {
        /// Name or id
        #[arg(add = segments())]
        segment: String,
        #[command(flatten)]
        wish: WishArgs,
    },
    /// Suspends all hosts
    Everything {
        #[command(flatten)]
        wish: WishArgs,
    },
    /// Lists what is suspended
    List,
}

/// `ringfence resume ...`
#[derive(Debug, Subcommand)]
pub enum ResumeCommand {
    /// Ends the suspension of a host
    Host {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
        /// Why; goes into the audit trail
        #[arg(long, short)]
        reason: String,
    },
    /// Ends the suspension of a segment
    Segment {
        /// Name or id
        #[arg(add = segments())]
        segment: String,
        /// Why; goes into the audit trail
        #[arg(long, short)]
        reason: String,
    },
    /// Ends the suspension of all hosts
    Everything {
        /// Why; goes into the audit trail
        #[arg(long, short)]
        reason: String,
    },
}

/// Until when, and why.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("end").required(true).args(["for_", "until", "no_end"])))]
pub struct WishArgs {
    /// For how long, as in 90m, 2h or 7d; at most 30 days, or 366 days for admins
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    for_: Option<TimeDelta>,
    /// Until when, as in 2026-12-01T06:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Until it is resumed; admins only
    #[arg(long)]
    no_end: bool,
    /// Why; goes into the audit trail
    #[arg(long, short)]
    reason: String,
}

impl WishArgs {
    fn body(&self) -> Value {
        let mut body = Map::from_iter([("reason".to_owned(), json!(self.reason))]);
        if let Some(time) = self.for_ {
            body.insert("for_s".to_owned(), json!(time.num_seconds()));
        }
        if let Some(until) = &self.until {
            body.insert("until".to_owned(), json!(until));
        }
        Value::Object(body)
    }
}

/// `ringfence suspend ...`
pub async fn suspend(command: SuspendCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        SuspendCommand::Host { host, wish } => {
            let request = Request::put(&["hosts", &host, "suspension"], wish.body());
            let show = |screen: &mut Screen, host: Host| match &host.suspension {
                Some(suspension) => told(screen, &host.name, suspension),
                None => Ok(()),
            };
            session.show::<Host>(request, show).await
        }
        SuspendCommand::Segment { segment, wish } => {
            let request = Request::put(&["segments", &segment, "suspension"], wish.body());
            let show = |screen: &mut Screen, one: SuspendedOne| {
                told(screen, &format!("segment {}", one.name), &one.suspension)
            };
            session.show::<SuspendedOne>(request, show).await
        }
        SuspendCommand::Everything { wish } => {
            let request = Request::put(&["suspension"], wish.body());
            let show = |screen: &mut Screen, suspension: Suspension| told(screen, "everything", &suspension);
            session.show::<Suspension>(request, show).await
        }
        SuspendCommand::List => {
            session
                .show::<Suspensions>(Request::get(&["suspensions"]), list)
                .await
        }
    }
}

/// `ringfence resume ...`
pub async fn resume(command: ResumeCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        ResumeCommand::Host { host, reason } => {
            let path = ["hosts", &host, "suspension"];
            let request = Request::delete(&path).saying(json!({ "reason": reason }));
            let show =
                |screen: &mut Screen, host: Host| screen.done(format!("{} is suspended no more", host.name));
            session.show::<Host>(request, show).await
        }
        ResumeCommand::Segment { segment, reason } => {
            let path = ["segments", &segment, "suspension"];
            let request = Request::delete(&path).saying(json!({ "reason": reason }));
            session.client.send(request).await?;
            session
                .screen
                .done(format!("segment {segment} is suspended no more"))
        }
        ResumeCommand::Everything { reason } => {
            let request = Request::delete(&["suspension"]).saying(json!({ "reason": reason }));
            session.client.send(request).await?;
            session.screen.done(
                "everything is suspended no more; hosts and segments that are suspended themselves stay so"
                    .to_owned(),
            )
        }
    }
}

fn told(screen: &mut Screen, what: &str, suspension: &Suspension) -> Result<(), CliError> {
    screen.line(format!("{what} is suspended {}", line(suspension)))
}

/// Until when, by whom and why.
#[must_use]
pub fn line(suspension: &Suspension) -> String {
    let until = match suspension.until {
        Some(until) => format!("until {}", time(until)),
        None => "until it is resumed".to_owned(),
    };
    format!("{until}, by {}: {}", suspension.by, suspension.reason)
}

fn list(screen: &mut Screen, all: Suspensions) -> Result<(), CliError> {
    let mut table = Table::new(&["WHAT", "NAME", "UNTIL", "SINCE", "BY", "REASON"]);
    let mut row = |what: &str, name: &str, suspension: &Suspension| {
        let until = suspension.until.map_or_else(|| "resumed".to_owned(), time);
        table.row([
            what.into(),
            name.into(),
            until.into(),
            time(suspension.since).into(),
            suspension.by.as_str().into(),
            suspension.reason.as_str().into(),
        ]);
    };
    if let Some(suspension) = &all.everything {
        row("everything", "", suspension);
    }
    for one in &all.segments {
        row("segment", &one.name, &one.suspension);
    }
    for one in &all.hosts {
        row("host", &one.name, &one.suspension);
    }
    screen.table(table)
}
