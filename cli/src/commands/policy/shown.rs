//! What came of a simulation, as a table and a timeline.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::Timestamp;
use ringfence_simulation::{Entry, HostOutcome, Outcome, Period, Wait};
use serde_json::{Value, json, to_value};

use crate::error::CliError;
use crate::output::{Cell, Screen, Table, fields, time};

/// The whole of it.
pub struct Told<'a> {
    pub outcome: &'a Outcome,
    pub assumed: &'a [String],
    /// The fences that were recorded, by host, where an incident is simulated.
    pub recorded: Option<&'a BTreeMap<String, Vec<Timestamp>>>,
}

impl Told<'_> {
    pub fn show(&self, screen: &mut Screen) -> Result<(), CliError> {
        if screen.is_for_programs() {
            return screen.data(&self.data());
        }
        let Outcome {
            began_at, ended_at, ..
        } = self.outcome;
        screen.line(format!(
            "from {} for {}",
            time(*began_at),
            span(*ended_at - *began_at)
        ))?;
        for assumed in self.assumed {
            screen.line(format!("assumed: {assumed}"))?;
        }
        screen.line("")?;
        screen.table(self.hosts())?;
        screen.line("")?;
        screen.table(self.timeline())
    }

    fn data(&self) -> Value {
        let mut data = to_value(self.outcome).unwrap_or_default();
        data["assumed"] = json!(self.assumed);
        if let (Some(recorded), Some(hosts)) = (self.recorded, data["hosts"].as_array_mut()) {
            for host in hosts {
                let name = host["host"].as_str().unwrap_or_default();
                host["recorded_fenced_at"] = json!(recorded.get(name).cloned().unwrap_or_default());
            }
        }
        data
    }

    fn hosts(&self) -> Table {
        let began_at = self.outcome.began_at;
        let mut all: Vec<HostOutcome> = self.outcome.hosts.clone();
        if self.recorded.is_none() {
            let mut table = Table::new(&["HOST", "SEGMENT", "SILENT", "FENCED", "WAITED FOR", "END", "WHY"]);
            for host in &all {
                let [name, segment, silent, fenced, waits, end, why] = cells(host, began_at);
                table.row([name, segment, silent, fenced, waits, end, why]);
            }
            return table;
        }
        all.sort_by(|a, b| a.host.cmp(&b.host));
        let mut table = Table::new(&[
            "HOST",
            "SEGMENT",
            "SILENT",
            "FENCED",
            "RECORDED",
            "WAITED FOR",
            "END",
            "WHY",
        ]);
        for host in &all {
            let [name, segment, silent, fenced, waits, end, why] = cells(host, began_at);
            let recorded = self.recorded.and_then(|recorded| recorded.get(&host.host));
            let recorded = times(recorded.map(Vec::as_slice).unwrap_or_default(), began_at);
            table.row([name, segment, silent, fenced, recorded, waits, end, why]);
        }
        table
    }

    fn timeline(&self) -> Table {
        let mut table = Table::new(&["AFTER", "HOST", "TYPE", "WHAT"]);
        for entry in &self.outcome.timeline {
            table.row([
                span(entry.at - self.outcome.began_at).into(),
                entry.host.as_str().into(),
                entry.kind.into(),
                what(entry).into(),
            ]);
        }
        table
    }
}

fn cells(host: &HostOutcome, began_at: Timestamp) -> [Cell; 7] {
    let waits: Vec<String> = host.waits.iter().map(|wait| waited(wait, began_at)).collect();
    [
        host.host.as_str().into(),
        host.segment.as_str().into(),
        Cell::maybe(host.silent_at.map(|at| span(at - began_at))),
        times(&host.fenced_at, began_at),
        Cell::maybe(Some(waits.join(", ")).filter(|waits| !waits.is_empty())),
        Cell::word(host.end.word.as_str()),
        host.end.detail.as_str().into(),
    ]
}

fn times(at: &[Timestamp], began_at: Timestamp) -> Cell {
    let at: Vec<String> = at.iter().map(|at| span(*at - began_at)).collect();
    Cell::maybe(Some(at.join(", ")).filter(|at| !at.is_empty()))
}

/// `quorum 1m30s to 10m32s`
fn waited(wait: &Period, began_at: Timestamp) -> String {
    let whom = match wait.waits_for {
        Wait::Held => wait.by.join(" and "),
        Wait::StormBrake => "the storm brake".to_owned(),
        Wait::Operator => "an operator".to_owned(),
    };
    let since = span(wait.since - began_at);
    match wait.until {
        Some(until) => format!("{whom} {since} to {}", span(until - began_at)),
        None => format!("{whom} from {since} on"),
    }
}

fn what(entry: &Entry) -> String {
    let text = |key: &str| entry.data[key].as_str().unwrap_or_default();
    match entry.kind {
        "host.failure_state" => format!("{} -> {}", text("from"), text("to")),
        "operation.started" => format!("{}: {}", text("kind"), text("reason")),
        _ if !text("detail").is_empty() => text("detail").to_owned(),
        _ => fields(&entry.data, &["generation", "operation_id"]),
    }
}

/// Hours, minutes and seconds, as they are written on the command line.
pub fn span(time: TimeDelta) -> String {
    let all = time.num_seconds();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    let parts = [(hours, "h"), (minutes, "m"), (seconds, "s")];
    let parts: String = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if parts.is_empty() { "0s".to_owned() } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_only_the_parts_that_it_needs() {
        for (seconds, told) in [
            (0, "0s"),
            (59, "59s"),
            (90, "1m30s"),
            (3600, "1h"),
            (7322, "2h2m2s"),
        ] {
            assert_eq!(span(TimeDelta::seconds(seconds)), told);
        }
    }
}
