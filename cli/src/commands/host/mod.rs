//! `ringfence host`.

mod confirm;
mod confirm_released;
mod edit;
mod evacuate;
mod explain;
mod fence;
mod forget_source;
mod import;
mod show;
mod watch;

use chrono::DateTime;
use clap::{Args, Subcommand};
use ringfence_core::Timestamp;
use serde_json::{Map, json};

use super::arguments::{ListArgs, put};
use super::completed::{hosts, segments};
use super::session::Session;
use crate::client::Request;
use crate::client::view::{Gates, Host};
use crate::clock::now;
use crate::error::CliError;

pub use fence::until_succeeded;

/// `ringfence host ...`
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Lists hosts
    List(HostListArgs),
    /// Shows a host: what was seen, what was proven, what holds it
    Show {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
    },
    /// Explains why a host is in its state, and what a fence would come to now; nothing is changed
    Explain {
        /// Name or id
        host: String,
    },
    /// Adds a host
    Add(edit::AddArgs),
    /// Adds many hosts from a CSV or YAML file or from a cloud, or changes them; done again, it changes nothing
    Import(import::ImportArgs),
    /// Changes a host; what is not named stays
    Set(edit::SetArgs),
    /// Removes a host; one that is FENCED stays
    Delete {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
    },
    /// Fences a host
    Fence(fence::FenceArgs),
    /// Says that a host was fenced by hand: a person's word, kept with their name
    Confirm(confirm::ConfirmArgs),
    /// Starts the workloads of a FENCED host elsewhere
    Evacuate(evacuate::EvacuateArgs),
    /// Takes a FENCED host back
    Rejoin(fence::RejoinArgs),
    /// Confirm as an admin that applied fencing was released by hand, or is gone with its device
    ConfirmReleased(confirm_released::ConfirmReleasedArgs),
    /// May workloads be scheduled here? May this host's workloads be started elsewhere?
    Gates {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
    },
    /// Reports how a host was seen
    Seen(SeenArgs),
    /// Strikes off a source that reports no more: what it said of the host counts no longer
    ForgetSource(forget_source::ForgetSourceArgs),
}

/// `ringfence host list`
#[derive(Debug, Args)]
pub struct HostListArgs {
    /// Only those that are FENCED or UNFENCED
    #[arg(long, value_parser = ["FENCED", "UNFENCED"], ignore_case = true)]
    fencing_state: Option<String>,
    /// Only those that were seen so
    #[arg(long, value_parser = FAILURE_STATES, ignore_case = true)]
    failure_state: Option<String>,
    /// Only those whose workloads live there
    #[arg(long, value_parser = ["nova", "kubernetes", "none"])]
    backend: Option<String>,
    /// Only those of this segment
    #[arg(long, add = segments())]
    segment: Option<String>,
    /// Only the one of this name
    #[arg(long, add = hosts())]
    name: Option<String>,
    /// Goes on until it is stopped: shows the list anew when it has changed, or for a program and in a pipe what has changed
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    list: ListArgs,
}

const FAILURE_STATES: [&str; 3] = ["UP", "UNREACHABLE", "UNKNOWN"];

/// `ringfence host seen`
#[derive(Debug, Args)]
pub struct SeenArgs {
    /// Name or id
    #[arg(add = hosts())]
    host: String,
    /// How
    #[arg(value_parser = FAILURE_STATES, ignore_case = true)]
    state: String,
    /// The id of its present boot (/proc/sys/kernel/random/boot_id)
    #[arg(long)]
    boot_id: Option<String>,
    /// When it booted, as in 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = DateTime::parse_from_rfc3339)]
    booted_at: Option<DateTime<chrono::FixedOffset>>,
}

/// Does it.
pub async fn run(command: HostCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        HostCommand::List(args) => list(args, session).await,
        HostCommand::Show { host } => session.show(Request::get(&["hosts", &host]), show::details).await,
        HostCommand::Explain { host } => explain::explain(&host, session).await,
        HostCommand::Add(args) => edit::add(args, session).await,
        HostCommand::Set(args) => edit::set(args, session).await,
        HostCommand::Delete { host } => session.delete("hosts", &host).await,
        HostCommand::Fence(args) => fence::fence(args, session).await,
        HostCommand::Import(args) => import::import(args, session).await,
        HostCommand::Confirm(args) => confirm::confirm(args, session).await,
        HostCommand::Evacuate(args) => evacuate::evacuate(args, session).await,
        HostCommand::Rejoin(args) => fence::rejoin(args, session).await,
        HostCommand::ConfirmReleased(args) => confirm_released::confirm_released(args, session).await,
        HostCommand::Gates { host } => {
            session
                .show::<Gates>(Request::get(&["hosts", &host, "gates"]), |screen, gates| {
                    screen.table(show::gates(&gates))
                })
                .await
        }
        HostCommand::Seen(args) => seen(args, session).await,
        HostCommand::ForgetSource(args) => forget_source::forget_source(args, session).await,
    }
}

async fn list(args: HostListArgs, session: &mut Session) -> Result<(), CliError> {
    let upper = |word: Option<String>| word.map(|word| word.to_uppercase());
    let query = vec![
        ("fencing_state", upper(args.fencing_state)),
        ("failure_state", upper(args.failure_state)),
        ("backend", args.backend),
        ("segment", args.segment),
        ("name", args.name),
    ];
    if args.watch {
        return watch::watch(query, &args.list, session).await;
    }
    session
        .list::<Host>("hosts", query, &args.list, show::table)
        .await
}

async fn seen(args: SeenArgs, session: &mut Session) -> Result<(), CliError> {
    let mut body = Map::new();
    let said = args.state.to_uppercase();
    put(&mut body, "failure_state", Some(said.as_str()));
    put(&mut body, "source", Some("operator"));
    put(&mut body, "observed_at", Some(json!(now())));
    put(&mut body, "boot_id", args.boot_id);
    put(
        &mut body,
        "booted_at",
        args.booted_at.map(|at| json!(Timestamp::from(at))),
    );
    let request = Request::put(&["hosts", &args.host, "failure-state"], body.into());
    session
        .show::<Host>(request, |screen, host| {
            screen.line(format!("{} is seen {}", host.name, host.failure_state))?;
            if host.failure_state != said {
                screen.note(format!(
                    "what other sources say stands against {said}: ringfence host show {}",
                    host.name
                ));
            }
            Ok(())
        })
        .await
}
