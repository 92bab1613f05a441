//! `ringfence segment`.

mod apply;
mod document;
mod export;
mod fault;
mod fields;
mod history;
mod keys;
mod shown;
mod template;
mod tree;
mod writing;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::Map;

use self::apply::{ApplyArgs, FileArgs};
pub use self::apply::{as_it_is, checked};
use self::export::ExportArgs;
use self::fields::SegmentFields;
use self::history::HistoryArgs;
use self::shown::{show, table};
use self::template::TemplateArgs;
pub use self::template::run as template;

use super::arguments::{ListArgs, put};
use super::completed::segments;
use super::session::Session;
use crate::client::Request;
use crate::error::CliError;

/// The keys of a segment that can be written.
const KEYS: [&str; 3] = ["name", "description", "policy"];

/// `ringfence segment ...`
#[derive(Debug, Subcommand)]
pub enum SegmentCommand {
    /// Lists segments
    List(ListArgs),
    /// Shows a segment
    Show {
        /// Name or id
        #[arg(add = segments())]
        segment: String,
    },
    /// Adds a segment
    Add(AddArgs),
    /// Changes a segment; options that are not given stay as they are
    Set(SetArgs),
    /// Deletes a segment that has no hosts
    Delete {
        /// Name or id
        #[arg(add = segments())]
        segment: String,
    },
    /// Prints segments as YAML documents, which apply takes
    Export(ExportArgs),
    /// Makes segments what their documents say: adds those that are missing, changes those that differ
    Apply(ApplyArgs),
    /// Shows what apply would change; the exit code is 9 where something differs
    Diff(FileArgs),
    /// Lists the versions of a segment, the newest first, from the audit trail; for admins
    History(HistoryArgs),
    /// Prints a document to begin with; without a name, lists those that there are
    Template(TemplateArgs),
}

/// `ringfence segment add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    fields: SegmentFields,
}

/// `ringfence segment set`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").multiple(true).required(true).args([
    "name", "description", "self_fencing_timeout_s", "settle_s", "restarts", "restart_delay_s", "auto_rejoin", "quarantine", "rejoin_wait_s", "workloads_zone",
    "heartbeats", "fencing", "sight", "group", "condition", "alarm", "evacuation", "moves_in_segment", "moves_on_platform",
])))]
pub struct SetArgs {
    /// Name or id
    #[arg(add = segments())]
    segment: String,
    /// Its new name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    fields: SegmentFields,
}

pub async fn run(command: SegmentCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        SegmentCommand::List(args) => session.list("segments", Vec::new(), &args, table).await,
        SegmentCommand::Show { segment } => session.show(Request::get(&["segments", &segment]), show).await,
        SegmentCommand::Add(args) => {
            let mut body = Map::new();
            put(&mut body, "name", Some(args.name));
            args.fields.put_into(&mut body)?;
            session
                .show(Request::post(&["segments"], body.into()), show)
                .await
        }
        SegmentCommand::Set(args) => set(args, session).await,
        SegmentCommand::Delete { segment } => session.delete("segments", &segment).await,
        SegmentCommand::Export(args) => export::run(args, session).await,
        SegmentCommand::Apply(args) => apply::apply(args, session).await,
        SegmentCommand::Diff(args) => apply::diff(args, session).await,
        SegmentCommand::History(args) => history::run(args, session).await,
        SegmentCommand::Template(args) => template(&args, &mut session.screen),
    }
}

async fn set(args: SetArgs, session: &mut Session) -> Result<(), CliError> {
    let (mut body, etag) = session.draft("segments", &args.segment, &KEYS).await?;
    put(&mut body, "name", args.name);
    args.fields.put_into(&mut body)?;
    let request = Request::put(&["segments", &args.segment], body.into()).if_match(etag);
    session.show(request, show).await
}
