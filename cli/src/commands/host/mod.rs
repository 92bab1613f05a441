//! `ringfence host`.

mod confirm;
mod confirm_released;
mod edit;
mod evacuate;
mod explain;
mod fence;
mod forget_source;
mod import;
mod problems;
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

/// `ringfence host ...`
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Lists hosts
    List(HostListArgs),
    /// Shows a host: its states, its proofs, its operation
    Show {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
    },
    /// Counts how often a host failed, was fenced, was taken back and had conditions; without a host, lists the hosts with the most problems
    Problems(problems::ProblemsArgs),
    /// Explains why a host is in its state, and what a fence would do now; nothing is changed
    Explain {
        /// Name or id
        host: String,
    },
    /// Adds a host
    Add(edit::AddArgs),
    /// Adds many hosts from a CSV or YAML file or from a cloud, or changes them; a second import changes nothing
    Import(import::ImportArgs),
    /// Changes a host; options that are not given stay as they are
    Set(edit::SetArgs),
    /// Deletes a host; a FENCED host cannot be deleted
    Delete {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
    },
    /// Fences a host
    Fence(fence::FenceArgs),
    /// Confirms that a host was fenced by hand: a person's word, recorded with their name
    Confirm(confirm::ConfirmArgs),
    /// Starts the workloads of a FENCED host elsewhere
    Evacuate(evacuate::EvacuateArgs),
    /// Rejoins a FENCED host
    Rejoin(fence::RejoinArgs),
    /// Confirms as an admin that applied fencing was released by hand, or is gone with its device
    ConfirmReleased(confirm_released::ConfirmReleasedArgs),
    /// Shows the gates: may workloads be scheduled here, and may this host's workloads be started elsewhere
    Gates {
        /// Name or id
        #[arg(add = hosts())]
        host: String,
    },
    /// Reports the failure state of a host
    Seen(SeenArgs),
    /// Forgets a source that reports no more: its observations of the host count no longer
    ForgetSource(forget_source::ForgetSourceArgs),
}

/// `ringfence host list`
#[derive(Debug, Args)]
pub struct HostListArgs {
    /// Only hosts in this fencing state
    #[arg(long, value_parser = ["FENCED", "UNFENCED"], ignore_case = true)]
    fencing_state: Option<String>,
    /// Only hosts in this failure state
    #[arg(long, value_parser = FAILURE_STATES, ignore_case = true)]
    failure_state: Option<String>,
    /// Only hosts whose workloads live in this backend
    #[arg(long, value_parser = ["nova", "kubernetes", "none"])]
    backend: Option<String>,
    /// Only hosts of this segment
    #[arg(long, add = segments())]
    segment: Option<String>,
    /// Only the host of this name
    #[arg(long, add = hosts())]
    name: Option<String>,
    /// Only hosts in quarantine
    #[arg(long)]
    quarantined: bool,
    /// Only hosts with an alarm that stands
    #[arg(long)]
    alarmed: bool,
    /// Goes on until it is stopped: shows the changed list on a terminal, and only the changes for a program or in a pipe
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
    /// The failure state
    #[arg(value_parser = FAILURE_STATES, ignore_case = true)]
    state: String,
    /// The id of the host's present boot (/proc/sys/kernel/random/boot_id)
    #[arg(long)]
    boot_id: Option<String>,
    /// When the host booted, as in 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = DateTime::parse_from_rfc3339)]
    booted_at: Option<DateTime<chrono::FixedOffset>>,
}

pub async fn run(command: HostCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        HostCommand::List(args) => list(args, session).await,
        HostCommand::Show { host } => session.show(Request::get(&["hosts", &host]), show::details).await,
        HostCommand::Problems(args) => problems::run(args, session).await,
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
    let flag = |is_wanted: bool| is_wanted.then(|| "true".to_owned());
    let upper = |word: Option<String>| word.map(|word| word.to_uppercase());
    let query = vec![
        ("fencing_state", upper(args.fencing_state)),
        ("failure_state", upper(args.failure_state)),
        ("backend", args.backend),
        ("segment", args.segment),
        ("name", args.name),
        ("quarantined", flag(args.quarantined)),
        ("alarmed", flag(args.alarmed)),
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
                    "other sources' observations outweigh {said}: ringfence host show {}",
                    host.name
                ));
            }
            Ok(())
        })
        .await
}
