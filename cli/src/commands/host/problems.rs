//! `ringfence host problems`.

use chrono::TimeDelta;
use clap::Args;

use super::super::arguments::duration;
use super::super::completed::{hosts, segments};
use super::super::session::{Session, views};
use crate::client::Request;
use crate::client::view::{Alarm, HostProblems, ProblemCounts, TroubledHost};
use crate::error::CliError;
use crate::output::{Cell, Details, Screen, Table, time};

/// `ringfence host problems`
#[derive(Debug, Args)]
pub struct ProblemsArgs {
    /// Name or id; absent: lists the hosts with the most problems
    #[arg(add = hosts(), conflicts_with_all = ["segment", "problem", "limit"])]
    host: Option<String>,
    /// How far to look back, as in 90m, 2h or 7d; 1m to 30d
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration)]
    within: TimeDelta,
    /// Only what came while the host was in this segment
    #[arg(long, add = segments())]
    segment: Option<String>,
    /// Only hosts with this problem, those that had it most often first
    #[arg(long, value_parser = ["failed", "fenced", "returned", "condition"])]
    problem: Option<String>,
    /// How many hosts to list at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub async fn run(args: ProblemsArgs, session: &mut Session) -> Result<(), CliError> {
    let window_s = args.within.num_seconds().to_string();
    if let Some(host) = &args.host {
        let request = Request::get(&["hosts", host, "problems"]).with("window_s", Some(window_s));
        return session.show::<HostProblems>(request, show).await;
    }
    let query = [
        ("window_s", Some(window_s)),
        ("segment", args.segment),
        ("problem", args.problem),
    ];
    let all = session
        .client
        .collect("problems", &query, args.limit as usize)
        .await?;
    if session.screen.is_for_programs() {
        return session.screen.data(&all);
    }
    session.screen.table(table(&views(&all, "problems")?))
}

fn table(hosts: &[TroubledHost]) -> Table {
    let mut table = Table::new(&[
        "NAME",
        "SEGMENT",
        "FAILED",
        "FENCED",
        "RETURNED",
        "CONDITIONS",
        "QUARANTINE",
        "ALARM",
    ])
    .and_wide(&["ID"]);
    for host in hosts {
        table.row([
            host.host.as_str().into(),
            host.segment.as_str().into(),
            host.counts.failed.to_string().into(),
            host.counts.fenced.to_string().into(),
            host.counts.returned.to_string().into(),
            Cell::maybe(conditions(&host.counts)),
            Cell::maybe(host.quarantined_at.map(time)),
            Cell::maybe(host.alarmed_at.map(time)),
            host.host_id.as_str().into(),
        ]);
    }
    table
}

/// Each condition with how often it came.
fn conditions(counts: &ProblemCounts) -> Option<String> {
    let each = counts.conditions.iter();
    let each: Vec<String> = each.map(|(name, times)| format!("{name} {times}")).collect();
    Some(each.join(", ")).filter(|text| !text.is_empty())
}

fn show(screen: &mut Screen, host: HostProblems) -> Result<(), CliError> {
    let HostProblems {
        counts,
        alarms,
        counted_since,
        ..
    } = &host;
    let mut details = Details::default()
        .with("name", &host.host)
        .with("segment", &host.segment)
        .with("counted since", time(*counted_since))
        .with("failed", counts.failed.to_string())
        .with("fenced", counts.fenced.to_string())
        .with("returned", counts.returned.to_string());
    for (name, times) in &counts.conditions {
        details = details.with("condition", format!("{name}: {times}"));
    }
    for alarm in alarms {
        details = details.with("alarm", alarm_line(alarm));
    }
    screen.details(details.with_some("quarantine since", host.quarantined_at.map(time).as_deref()))
}

/// An alarm that stands.
#[must_use]
pub fn alarm_line(alarm: &Alarm) -> String {
    let Alarm {
        problem,
        condition,
        times,
        within_s,
        since,
    } = alarm;
    let what = condition.as_ref().unwrap_or(problem);
    format!("{what} {times} times within {within_s} s; since {}", time(*since))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_host_is_listed_with_what_happened_to_it() {
        let hosts = from_value(json!([
            {
                "host_id": "9b2e", "host": "compute1", "segment": "rack-1", "problems": 5, "failed": 2, "fenced": 1, "returned": 1,
                "conditions": {"KernelDeadlock": 2}, "quarantined_at": null, "alarmed_at": "2026-01-31T12:00:00Z",
            },
            {
                "host_id": "9b2f", "host": "compute2", "segment": "rack-1", "problems": 1, "failed": 1, "fenced": 0, "returned": 0,
                "conditions": {}, "quarantined_at": null, "alarmed_at": null,
            },
        ]));
        let hosts: Vec<TroubledHost> = hosts.unwrap();
        let text = table(&hosts).render(None, false, false);
        let expected = "\
NAME      SEGMENT  FAILED  FENCED  RETURNED  CONDITIONS        QUARANTINE  ALARM
compute1  rack-1   2       1       1         KernelDeadlock 2  -           2026-01-31 12:00:00Z
compute2  rack-1   1       0       0         -                 -           -
";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_alarm_names_what_comes_too_often() {
        let line = |condition: serde_json::Value| {
            let alarm = json!({
                "problem": "condition", "condition": condition, "times": 3, "within_s": 3600, "since": "2026-01-31T12:00:00Z",
            });
            alarm_line(&from_value(alarm).unwrap())
        };
        let rest = "3 times within 3600 s; since 2026-01-31 12:00:00Z";
        assert_eq!(line(json!("KernelDeadlock")), format!("KernelDeadlock {rest}"));
        assert_eq!(line(json!(null)), format!("condition {rest}"));
    }
}
