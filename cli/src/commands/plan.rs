//! `ringfence plan`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::arguments::{ListArgs, put};
use super::completed::plans;
use super::document;
use super::session::Session;
use crate::client::Request;
use crate::client::view::{Plan, Scope};
use crate::error::CliError;
use crate::output::{Details, Screen, Table};

/// `ringfence plan ...`
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Lists plans
    List(ListArgs),
    /// Shows a plan
    Show {
        /// Name or id
        #[arg(add = plans())]
        plan: String,
    },
    /// Adds a plan
    Add(AddArgs),
    /// Replaces a plan; operations that have begun keep the old one
    Set(SetArgs),
    /// Removes a plan
    Delete {
        /// Name or id
        #[arg(add = plans())]
        plan: String,
    },
}

/// `ringfence plan add`
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The plan's name; the file may have it instead
    name: Option<String>,
    /// The plan as JSON or TOML; - reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
}

/// `ringfence plan set`
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Name or id
    #[arg(add = plans())]
    plan: String,
    /// The whole plan as JSON or TOML; - reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
}

pub async fn run(command: PlanCommand, session: &mut Session) -> Result<(), CliError> {
    match command {
        PlanCommand::List(args) => session.list("plans", Vec::new(), &args, table).await,
        PlanCommand::Show { plan } => session.show(Request::get(&["plans", &plan]), show).await,
        PlanCommand::Add(args) => add(args, session).await,
        PlanCommand::Set(args) => set(&args.plan, &args.file, session).await,
        PlanCommand::Delete { plan } => session.delete("plans", &plan).await,
    }
}

async fn add(args: AddArgs, session: &mut Session) -> Result<(), CliError> {
    let mut body = document::read(&args.file)?;
    put(&mut body, "name", args.name);
    session.show(Request::post(&["plans"], body.into()), show).await
}

async fn set(plan: &str, file: &Path, session: &mut Session) -> Result<(), CliError> {
    let mut body: Map<String, Value> = document::read(file)?;
    let (now, etag) = session.draft("plans", plan, &["name"]).await?;
    if !body.contains_key("name") {
        body.extend(now);
    }
    session
        .show(Request::put(&["plans", plan], body.into()).if_match(etag), show)
        .await
}

fn scope(scope: &Scope) -> String {
    match (scope.kind.as_str(), &scope.value) {
        ("default", _) => "all hosts that no other plan is for".to_owned(),
        ("host_type", Some(value)) => format!("hosts of type {value}"),
        (kind, Some(value)) => format!("{kind} {value}"),
        (kind, None) => kind.to_owned(),
    }
}

/// The kinds of the plan's tasks, in their order.
fn kinds(plan: &Plan) -> Vec<&str> {
    let tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
    tasks.map(|task| task.kind.as_str()).collect()
}

/// The sufficient sets that the plan's tasks, its hosts and people can complete; the default sets name more than most plans can.
fn sets(plan: &Plan) -> String {
    let tasks = kinds(plan);
    let is_in_reach = |kind: &String| {
        tasks.contains(&kind.as_str()) || matches!(kind.as_str(), "self-fencing" | "kdump" | "operator")
    };
    plan.sufficient_sets
        .iter()
        .filter(|set| set.iter().all(is_in_reach))
        .map(|set| set.join(" + "))
        .collect::<Vec<_>>()
        .join(" | ")
}

fn table(plans: &[Plan]) -> Table {
    let mut table = Table::new(&["NAME", "FOR", "TASKS", "FENCED BY"]).and_wide(&["ID"]);
    for plan in plans {
        table.row([
            plan.name.as_str().into(),
            scope(&plan.scope).into(),
            kinds(plan).join(" ").into(),
            sets(plan).into(),
            plan.id.as_str().into(),
        ]);
    }
    table
}

fn show(screen: &mut Screen, plan: Plan) -> Result<(), CliError> {
    let details = Details::default()
        .with("name", &plan.name)
        .with("id", &plan.id)
        .with("for", scope(&plan.scope))
        .with("FENCED by", sets(&plan));
    screen.details(details)?;
    screen.line("")?;
    screen.table(stages(&plan))
}

fn stages(plan: &Plan) -> Table {
    let mut table = Table::new(&["STAGE", "AFTER", "TASK", "LEVEL", "METHODS"]);
    for (at, stage) in plan.stages.iter().enumerate() {
        for task in &stage.tasks {
            let mut row = |level: String, methods: String| {
                let (stage_number, after) = ((at + 1).to_string(), format!("{} s", stage.delay_s));
                table.row([
                    stage_number.into(),
                    after.into(),
                    task.kind.as_str().into(),
                    level.into(),
                    methods.into(),
                ]);
            };
            if task.levels.is_empty() {
                row("-".to_owned(), "-".to_owned());
            }
            task.levels
                .iter()
                .for_each(|level| row(level.level.to_string(), level.methods.join(" + ")));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_plan_shows_its_levels_and_what_makes_a_host_fenced() {
        let plan: Plan = from_value(json!({
            "id": "p", "name": "racks", "scope": {"kind": "host_type", "value": "r740"},
            "stages": [{"delay_s": 5, "tasks": [{"kind": "power.off", "levels": [
                {"level": 1, "methods": ["bmc"]}, {"level": 2, "methods": ["pdu-a", "pdu-b"]}]}]}],
            "sufficient_sets": [["power.off"], ["network.fence", "storage.fence"], ["operator"]],
        }))
        .unwrap();
        assert_eq!(sets(&plan), "power.off | operator");
        let expected = "\
STAGE  AFTER  TASK       LEVEL  METHODS
1      5 s    power.off  1      bmc
1      5 s    power.off  2      pdu-a + pdu-b
";
        assert_eq!(stages(&plan).render(None, false, false), expected);
    }
}
