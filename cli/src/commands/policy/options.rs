//! What happens, as it is written on the command line.

use std::collections::BTreeSet;
use std::str::FromStr;

use chrono::TimeDelta;
use ringfence_core::{ConditionStatus, FailureState, HostId};
use ringfence_simulation::{Happening, Site, What};

use crate::commands::arguments::{pair, span};
use crate::error::CliError;

/// The most hosts that fall silent in one story.
const MAX_HOSTS: usize = 500;
/// Names that an error lists.
const NAMED: usize = 10;

/// One or more names, and when it happens to them: `NAME[,NAME][@TIME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The text before the `@`.
    pub names: String,
    /// Since the beginning.
    pub after: Option<TimeDelta>,
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (names, after) = match text.rsplit_once('@') {
            Some((names, after)) => (names, Some(time(after)?)),
            None => (text, None),
        };
        if names.split(',').any(str::is_empty) {
            return Err(
                "names separated by commas are allowed, with @TIME behind them, as in c1,c2@30s".to_owned(),
            );
        }
        Ok(Self {
            names: names.to_owned(),
            after,
        })
    }
}

/// As [`At`], with a time.
pub fn at_time(text: &str) -> Result<At, String> {
    let at: At = text.parse()?;
    if at.after.is_none() {
        return Err("a time is missing; NAME@TIME is allowed, as in c1@10m".to_owned());
    }
    Ok(at)
}

/// Since the beginning; 0 is the beginning itself.
pub fn time(text: &str) -> Result<TimeDelta, String> {
    if matches!(text, "0" | "0s" | "0m" | "0h") {
        return Ok(TimeDelta::zero());
    }
    let span = span(text)?;
    TimeDelta::from_std(span).map_err(|error| error.to_string())
}

/// What is asked for with `--silent` and the options beside it.
pub struct Wishes<'a> {
    pub silent: &'a [At],
    pub labels: &'a [At],
    pub segments: &'a [At],
    pub every: TimeDelta,
    pub back: &'a [At],
    pub rejoin: &'a [At],
    pub conditions: &'a [At],
}

impl Wishes<'_> {
    /// What happens to which host. A host falls silent once, at the first time that is given for it.
    pub fn happenings(&self, site: &Site) -> Result<Vec<Happening>, CliError> {
        let mut silent: Vec<(HostId, Option<TimeDelta>)> = Vec::new();
        for at in self.silent {
            for name in at.names.split(',') {
                silent.push((host(site, "--silent", name)?, at.after));
            }
        }
        for at in self.labels {
            silent.extend(labelled(site, &at.names)?.into_iter().map(|id| (id, at.after)));
        }
        for at in self.segments {
            for name in at.names.split(',') {
                let hosts = of_segment(site, name)?;
                silent.extend(hosts.into_iter().map(|id| (id, at.after)));
            }
        }
        let mut known = BTreeSet::new();
        silent.retain(|(id, _)| known.insert(*id));
        if silent.len() > MAX_HOSTS {
            let count = silent.len();
            return Err(CliError::Usage(format!(
                "{count} hosts would fall silent; at most {MAX_HOSTS} are allowed"
            )));
        }
        let mut happenings = Vec::new();
        let mut without_time = 0;
        for (host_id, after) in silent {
            let after = after.unwrap_or_else(|| {
                without_time += 1;
                self.every * (without_time - 1)
            });
            let what = What::Seen(FailureState::Unreachable);
            happenings.push(Happening { after, host_id, what });
        }
        self.later(site, &mut happenings)?;
        Ok(happenings)
    }

    fn later(&self, site: &Site, happenings: &mut Vec<Happening>) -> Result<(), CliError> {
        let back = self
            .back
            .iter()
            .map(|at| ("--back", at, What::Seen(FailureState::Up)));
        let rejoin = self.rejoin.iter().map(|at| ("--rejoin", at, What::Rejoin));
        for (option, at, what) in back.chain(rejoin) {
            for name in at.names.split(',') {
                happenings.push(Happening {
                    after: at.after.unwrap_or_default(),
                    host_id: host(site, option, name)?,
                    what: what.clone(),
                });
            }
        }
        for at in self.conditions {
            happenings.push(condition(site, at)?);
        }
        Ok(())
    }
}

/// `HOST:NAME[=STATUS]`
fn condition(site: &Site, at: &At) -> Result<Happening, CliError> {
    let wrong = || {
        CliError::Usage(format!(
            "--condition: is {:?}; HOST:NAME[=True|False|Unknown][@TIME] is allowed",
            at.names
        ))
    };
    let (name_of_host, condition) = at.names.split_once(':').ok_or_else(wrong)?;
    let (name, status) = match condition.split_once('=') {
        Some((name, status)) => (name, ConditionStatus::from_word(status).ok_or_else(wrong)?),
        None => (condition, ConditionStatus::True),
    };
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(Happening {
        after: at.after.unwrap_or_default(),
        host_id: host(site, "--condition", name_of_host)?,
        what: What::Condition {
            source: None,
            name: name.to_owned(),
            status,
        },
    })
}

fn host(site: &Site, option: &str, name: &str) -> Result<HostId, CliError> {
    let hosts = &site.copy.hosts;
    let is_it = |host: &&ringfence_core::Host| host.name == name || host.id.to_string() == name;
    let found = hosts.iter().find(is_it).map(|host| host.id);
    found.ok_or_else(|| {
        let known = hosts.iter().map(|host| host.name.as_str());
        CliError::Usage(format!(
            "{option}: is {name:?}, and there is no such host; {}",
            some_of(known)
        ))
    })
}

fn labelled(site: &Site, label: &str) -> Result<Vec<HostId>, CliError> {
    let wanted = pair(label)
        .map_err(|_| CliError::Usage(format!("--silent-label: is {label:?}; LABEL=VALUE is allowed")))?;
    let has = |host: &&ringfence_core::Host| host.labels.get(&wanted.key) == Some(&wanted.value);
    let mut found: Vec<_> = site.copy.hosts.iter().filter(has).collect();
    if found.is_empty() {
        let values: BTreeSet<String> = site
            .copy
            .hosts
            .iter()
            .flat_map(|host| &host.labels)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let values = some_of(values.iter().map(String::as_str));
        return Err(CliError::Usage(format!(
            "--silent-label: is {label:?}, and no host has this label; {values}"
        )));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found.into_iter().map(|host| host.id).collect())
}

fn of_segment(site: &Site, name: &str) -> Result<Vec<HostId>, CliError> {
    let segments = &site.copy.segments;
    let segment = segments
        .iter()
        .find(|segment| segment.name == name || segment.id.to_string() == name);
    let Some(segment) = segment else {
        let known = some_of(segments.iter().map(|segment| segment.name.as_str()));
        return Err(CliError::Usage(format!(
            "--silent-segment: is {name:?}, and there is no such segment; {known}"
        )));
    };
    let mut found: Vec<_> = site
        .copy
        .hosts
        .iter()
        .filter(|host| host.segment_id == segment.id)
        .collect();
    if found.is_empty() {
        return Err(CliError::Usage(format!(
            "--silent-segment: is {name:?}, which has no hosts; a segment with hosts is allowed"
        )));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found.into_iter().map(|host| host.id).collect())
}

/// What is allowed, as far as it fits.
pub fn some_of<'a>(known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    match known.as_slice() {
        [] => "there is none".to_owned(),
        [one] => format!("{one} is allowed"),
        all if all.len() <= NAMED => format!("{} are allowed", all.join(", ")),
        [first @ .., _] => {
            let more = known.len() - NAMED;
            format!("{} and {more} more are allowed", first[..NAMED].join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_time() {
        let at = |text: &str| text.parse::<At>();
        assert_eq!(at("c1,c2@30s").unwrap().after, Some(TimeDelta::seconds(30)));
        assert_eq!(at("c1").unwrap().after, None);
        assert_eq!(at("c1@0").unwrap().after, Some(TimeDelta::zero()));
        for bad in ["", ",c1", "c1,", "c1@", "c1@soon", "@5s"] {
            assert!(at(bad).is_err(), "{bad}");
        }
        assert!(at_time("c1").unwrap_err().contains("c1@10m"));
    }

    #[test]
    fn what_is_allowed_is_told_as_far_as_it_fits() {
        assert_eq!(some_of(["b", "a"].into_iter()), "a, b are allowed");
        let many: Vec<String> = (10..30).map(|n| format!("h{n}")).collect();
        let told = some_of(many.iter().map(String::as_str));
        assert!(
            told.starts_with("h10, h11,") && told.ends_with("h19 and 10 more are allowed"),
            "{told}"
        );
        assert_eq!(some_of([].into_iter()), "there is none");
    }
}
