//! `ringfence doctor`: on the machine of a service, with its configuration.

use clap::Args;
use serde_json::json;

use crate::args::{ConfigArgs, Format};
use crate::config::Environment;
use crate::doctor::{self, Finding, Judged, Report, Weight, Which};
use crate::error::CliError;
use crate::output::progress::Progress;
use crate::output::{Cell, Screen, Table};

/// `ringfence doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also asks the device of every method and host for its state, through a worker; nothing is changed
    #[arg(long)]
    devices: bool,
    /// Asks only the devices of this method
    #[arg(long, requires = "devices", value_name = "METHOD")]
    method: Option<String>,
    /// Asks only the devices that fence this host
    #[arg(long, requires = "devices", value_name = "HOST")]
    host: Option<String>,
    /// The services' configuration.
    #[command(flatten)]
    config: ConfigArgs,
    /// How to answer
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Prints every finding, and for each host whether it can be fenced and by what; fails if a finding has to be mended.
pub async fn run(args: DoctorArgs, environment: &Environment) -> Result<(), CliError> {
    let settings = args.config.settings(environment, Vec::new())?;
    let mut screen = Screen::new(args.output);
    let (method, host) = (args.method, args.host);
    let which = args.devices.then_some(Which { method, host });
    let progress = Progress::new(screen.is_for_programs());
    let tell = |asked: usize, all: usize| progress.note(&format!("{asked} of {all} devices have been asked"));
    let report = doctor::examine(&settings, which.as_ref(), &tell).await;
    if screen.is_for_programs() {
        screen.data(&json(&report))?;
    } else {
        screen.table(table(&report))?;
        if !report.hosts.is_empty() {
            screen.line("")?;
            screen.table(hosts(&report.hosts))?;
        }
    }
    match report.failures() {
        0 => Ok(()),
        1 => Err(CliError::Unwell("1 finding has to be mended".to_owned())),
        many => Err(CliError::Unwell(format!("{many} findings have to be mended"))),
    }
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Good => "ok",
        Weight::Warning => "warning",
        Weight::Failure => "failed",
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(&["PART", "STATE", "FOUND", "WHAT TO DO"]);
    for finding in &report.findings {
        table.row([
            finding.part.into(),
            Cell::word(word(finding.weight)),
            finding.found.as_str().into(),
            Cell::maybe(finding.remedy.as_deref()),
        ]);
    }
    table
}

/// Whether each host can be fenced, and by what.
fn hosts(all: &[Judged]) -> Table {
    let mut table = Table::new(&["HOSTS", "CAN BE FENCED", "BY", "NOT BY"]);
    let listed = |texts: &[String], gap: &str| Some(texts.join(gap)).filter(|text| !text.is_empty());
    for judged in all {
        let verdict = &judged.verdict;
        table.row([
            judged.some().into(),
            Cell::word(if verdict.can_be_fenced { "yes" } else { "no" }),
            Cell::maybe(listed(&verdict.by, "; or ")),
            Cell::maybe(listed(&verdict.not_by, "; ")),
        ]);
    }
    table
}

fn json(report: &Report) -> serde_json::Value {
    let one = |finding: &Finding| {
        json!({
            "part": finding.part, "state": word(finding.weight), "found": finding.found, "remedy": finding.remedy,
        })
    };
    let judged = |judged: &Judged| {
        json!({
            "hosts": judged.hosts, "can_be_fenced": judged.verdict.can_be_fenced, "by": judged.verdict.by,
            "not_by": judged.verdict.not_by,
        })
    };
    json!({
        "findings": report.findings.iter().map(one).collect::<Vec<_>>(),
        "hosts": report.hosts.iter().map(judged).collect::<Vec<_>>(),
        "failures": report.failures(),
    })
}
