//! What was so before the story begins.

use chrono::TimeDelta;
use ringfence_core::{ConditionStatus, FailureState, HostId, Timestamp};

use crate::{Seen, Site, Story};

/// Between two words that a host which is UP is so still: a source whose hosts are counted has to repeat it.
const HEARD_EVERY: TimeDelta = TimeDelta::seconds(90);

/// For how long sources have to have heard their hosts before the story begins; `None` where no segment counts that.
fn quiet_time(site: &Site) -> Option<TimeDelta> {
    let sights = site
        .copy
        .segments
        .iter()
        .filter_map(|segment| segment.policy.fencing.sight);
    let quiet_s = sights.map(|sight| sight.quiet_s).max()?;
    Some(TimeDelta::seconds(i64::from(quiet_s)) + HEARD_EVERY)
}

/// How often it is said again that a host is UP, where that is counted.
pub(crate) fn heard_every(site: &Site) -> Option<TimeDelta> {
    quiet_time(site).map(|_| HEARD_EVERY)
}

/// What is known of the time before is told at its own moments.
pub(crate) fn first_moment(site: &Site, story: &Story) -> Timestamp {
    let since = site.seen.values().flat_map(|seen| {
        let conditions = seen.conditions.iter().map(|(_, _, condition)| condition.since);
        conditions.chain(seen.since)
    });
    let quiet_since = quiet_time(site).map(|time| story.begins_at - time);
    let first = since.chain([story.begins_at]).chain(quiet_since).min();
    first.unwrap_or(story.begins_at).min(story.begins_at) - TimeDelta::seconds(60)
}

/// What is known from before the story.
pub(crate) enum Past<'a> {
    Seen(&'a Seen),
    /// It is seen so still.
    Still,
    /// The source, the name and the status of a condition.
    Condition(&'a str, &'a str, ConditionStatus),
}

/// What is known from before the story, in its order.
pub(crate) fn past(
    site: &Site,
    first: Timestamp,
    begins_at: Timestamp,
) -> Vec<(Timestamp, HostId, Past<'_>)> {
    let mut past = Vec::new();
    for host in &site.copy.hosts {
        let Some(seen) = site.seen.get(&host.id) else {
            continue;
        };
        let within = |at: Timestamp| at.clamp(first, begins_at);
        // A moment that lies ahead is none of which a host could know: it is FENCED when it is seen first.
        let fenced_at = host.fence.as_ref().map(|fence| fence.at);
        let since = seen.since.max(fenced_at).unwrap_or(first);
        past.push((within(since), host.id, Past::Seen(seen)));
        if let Some(quiet_time) = quiet_time(site).filter(|_| seen.state == FailureState::Up) {
            let times = std::iter::successors(Some(begins_at - quiet_time), |at| Some(*at + HEARD_EVERY));
            let later = times.take_while(|at| *at <= begins_at).filter(|at| *at > since);
            past.extend(later.map(|at| (at, host.id, Past::Still)));
        }
        for (source, name, condition) in &seen.conditions {
            let told = Past::Condition(source, name, condition.status);
            past.push((within(condition.since), host.id, told));
        }
    }
    past.sort_by_key(|(at, host_id, _)| (*at, *host_id));
    past
}

/// Every host was there when it begins.
pub(crate) fn known_since(first: Timestamp, site: &Site) -> Site {
    let mut site = site.clone();
    for host in &mut site.copy.hosts {
        host.created_at = host.created_at.min(first);
        host.updated_at = host.created_at;
    }
    site
}
