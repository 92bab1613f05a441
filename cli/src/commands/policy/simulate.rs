//! `ringfence policy simulate`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chrono::TimeDelta;
use clap::{ArgGroup, Args};
use ringfence_core::{Resource, SegmentDraft, Timestamp};
use ringfence_simulation::{Assumptions, Site, Story, simulate};

use super::options::{At, Wishes, at_time, some_of, time};
use super::recorded::Incident;
use super::shown::Told;
use super::site::{copy, in_force};
use crate::clock::now;
use crate::commands::arguments::moment;
use crate::commands::completed::methods;
use crate::commands::segment;
use crate::commands::session::Session;
use crate::error::CliError;

/// The longest task, in seconds.
const MAX_TAKES_S: i64 = 3_600;
/// The driver whose methods are asked what a fence would cost the storage.
const CEPH: &str = "ceph";

/// `ringfence policy simulate`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("story").required(true).multiple(true)
    .args(["silent", "silent_label", "silent_segment", "condition", "events_from", "events_file"])))]
pub struct SimulateArgs {
    /// Hosts that fall silent, as in c1,c2 or c1@30s: 30 s after the beginning; may be repeated
    #[arg(long, value_name = "HOST[,HOST][@TIME]")]
    silent: Vec<At>,
    /// All hosts with this label fall silent, as in rack=r1; may be repeated
    #[arg(long, value_name = "LABEL=VALUE[@TIME]")]
    silent_label: Vec<At>,
    /// All hosts of this segment fall silent; may be repeated
    #[arg(long, value_name = "SEGMENT[@TIME]")]
    silent_segment: Vec<At>,
    /// The time between two hosts that fall silent and have no time of their own, as in 30s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    every: TimeDelta,
    /// Hosts that are seen UP again, booted anew, as in c1@10m; may be repeated
    #[arg(long, value_name = "HOST[,HOST]@TIME", value_parser = at_time)]
    back: Vec<At>,
    /// Hosts whose rejoin you ask for, as in c1@12m; may be repeated
    #[arg(long, value_name = "HOST[,HOST]@TIME", value_parser = at_time)]
    rejoin: Vec<At>,
    /// A condition that a host has, as in c1:KernelDeadlock@10s or c1:Ready=False; may be repeated
    #[arg(long, value_name = "HOST:NAME[=STATUS][@TIME]")]
    condition: Vec<At>,
    /// How long it is followed, at most 24h; 1h if absent, or to 30m after the events
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasts: Option<TimeDelta>,
    /// Segments as YAML, as segment apply takes them: their policies in the place of those in force; may be repeated
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// How long each task on a device takes
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    takes: TimeDelta,
    /// Methods whose devices do not show what was asked of them; may be repeated
    #[arg(long, value_name = "METHOD[,METHOD]", value_delimiter = ',', add = methods())]
    failing: Vec<String>,
    /// Methods whose Ceph or query holds every fence; may be repeated
    #[arg(long, value_name = "METHOD[,METHOD]", value_delimiter = ',', add = methods())]
    holding: Vec<String>,
    /// Simulates an incident from the events that were recorded since then, as in 2026-01-31T12:00:00Z or 2h
    #[arg(long, value_name = "TIME", conflicts_with_all = ["silent", "silent_label", "silent_segment"])]
    events_from: Option<String>,
    /// Until when; now if absent
    #[arg(long, value_name = "TIME", conflicts_with_all = ["silent", "silent_label", "silent_segment"])]
    events_to: Option<String>,
    /// The events of the incident, as event list or event tail writes them with --output json; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["silent", "silent_label", "silent_segment"])]
    events_file: Option<PathBuf>,
}

pub async fn run(args: SimulateArgs, session: &mut Session) -> Result<(), CliError> {
    let assumptions = args.assumptions()?;
    let now = now();
    let incident = args.incident(session, now).await?;
    let policies = policies(&args.policy, session).await?;
    let mut copied = copy(&session.client, now).await?;
    put(&policies, &mut copied.site)?;
    check_methods(&args, &copied.site)?;
    let mut assumed = assumptions.told();
    assumed.append(&mut copied.notes);
    let story = match &incident {
        Some(incident) => {
            assumed.clear();
            assumed.extend(assumptions.told());
            let (story, notes) = incident.story(&mut copied.site, args.lasts)?;
            assumed.extend(notes);
            Story {
                happenings: [story.happenings, args.wishes().happenings(&copied.site)?].concat(),
                ..story
            }
        }
        None => Story {
            begins_at: now,
            lasts: args.lasts.unwrap_or(TimeDelta::hours(1)),
            happenings: args.wishes().happenings(&copied.site)?,
        },
    };
    args.check_times(&story)?;
    let drivers = ringfence_workers::catalogue();
    let outcome = simulate(&copied.site, &story, assumptions, drivers)
        .await
        .map_err(|error| CliError::service("simulation", "cannot be carried out", error))?;
    let recorded = incident.as_ref().map(Incident::fences);
    let told = Told {
        outcome: &outcome,
        assumed: &assumed,
        recorded: recorded.as_ref(),
    };
    told.show(&mut session.screen)
}

impl SimulateArgs {
    fn wishes(&self) -> Wishes<'_> {
        Wishes {
            silent: &self.silent,
            labels: &self.silent_label,
            segments: &self.silent_segment,
            every: self.every,
            back: &self.back,
            rejoin: &self.rejoin,
            conditions: &self.condition,
        }
    }

    fn assumptions(&self) -> Result<Assumptions, CliError> {
        let takes_s = self.takes.num_seconds();
        if !(1..=MAX_TAKES_S).contains(&takes_s) {
            return Err(CliError::Usage(format!(
                "--takes: is {takes_s} s; 1 s to {MAX_TAKES_S} s is allowed"
            )));
        }
        Ok(Assumptions {
            takes: self.takes,
            failing: self.failing.iter().cloned().collect(),
            holding: self.holding.iter().cloned().collect(),
        })
    }

    async fn incident(&self, session: &Session, now: Timestamp) -> Result<Option<Incident>, CliError> {
        let given = |option: &str, text: &Option<String>| {
            let read = text.as_deref().map(|text| {
                moment(text, now).map_err(|why| CliError::Usage(format!("{option}: is {text:?}; {why}")))
            });
            read.transpose()
        };
        let from = given("--events-from", &self.events_from)?;
        let to = given("--events-to", &self.events_to)?;
        match (&self.events_file, from) {
            (Some(path), from) => Incident::of_file(path, from, to).map(Some),
            (None, Some(from)) => Incident::of_service(&session.client, from, to.unwrap_or(now))
                .await
                .map(Some),
            (None, None) => Ok(None),
        }
    }

    /// What comes after the end would be left out without a word.
    fn check_times(&self, story: &Story) -> Result<(), CliError> {
        let last = story.happenings.iter().map(|happening| happening.after).max();
        let late = last.filter(|last| *last > story.lasts);
        late.map_or(Ok(()), |late| {
            Err(CliError::Usage(format!(
                "--for: is {} s, and something happens after {} s; a time that is no shorter is allowed",
                story.lasts.num_seconds(),
                late.num_seconds()
            )))
        })
    }
}

/// The documents of all files, by the names of their segments.
async fn policies(
    files: &[PathBuf],
    session: &Session,
) -> Result<BTreeMap<String, (PathBuf, SegmentDraft)>, CliError> {
    let mut all = BTreeMap::new();
    for path in files {
        for draft in segment::checked(path, session).await? {
            let name = draft.name.clone();
            if all.insert(name.clone(), (path.clone(), draft)).is_some() {
                let why = format!(
                    "names segment {name:?}, as a document before does; each segment is allowed once"
                );
                return Err(CliError::content(path, why));
            }
        }
    }
    Ok(all)
}

/// Puts the policies into the copy.
fn put(policies: &BTreeMap<String, (PathBuf, SegmentDraft)>, site: &mut Site) -> Result<(), CliError> {
    for (name, (path, draft)) in policies {
        let segments = &mut site.copy.segments;
        let Some(known) = segments.iter_mut().find(|segment| segment.name == *name) else {
            let known = some_of(segments.iter().map(|segment| segment.name.as_str()));
            let why = format!("names segment {name:?}, and there is none of this name; {known}");
            return Err(CliError::content(path, why));
        };
        *known = in_force(draft.clone(), known.id, known.created_at);
    }
    Ok(())
}

fn check_methods(args: &SimulateArgs, site: &Site) -> Result<(), CliError> {
    let methods = &site.copy.methods;
    let of = |is_asked: bool| -> BTreeSet<&str> {
        let is_one = |method: &&ringfence_core::Method| {
            let asks = method.driver == CEPH || method.resource == Resource::Query;
            is_asked == asks || method.driver == CEPH
        };
        methods
            .iter()
            .filter(is_one)
            .map(|method| method.name.as_str())
            .collect()
    };
    for (option, names, what, known) in [
        (
            "--failing",
            &args.failing,
            "method that acts on devices",
            of(false),
        ),
        (
            "--holding",
            &args.holding,
            "method that is asked before a fence",
            of(true),
        ),
    ] {
        if let Some(name) = names.iter().find(|name| !known.contains(name.as_str())) {
            let known = some_of(known.iter().copied());
            return Err(CliError::Usage(format!(
                "{option}: is {name:?}, and there is no such {what}; {known}"
            )));
        }
    }
    Ok(())
}
