//! What was so before the story begins.

use chrono::TimeDelta;
use ringfence_core::{ConditionStatus, HostId, Timestamp};

use crate::{Seen, Site, Story};

/// What is known of the time before is told at its own moments.
pub(crate) fn first_moment(site: &Site, story: &Story) -> Timestamp {
    let since = site.seen.values().flat_map(|seen| {
        let conditions = seen.conditions.iter().map(|(_, _, condition)| condition.since);
        conditions.chain(seen.since)
    });
    let first = since.chain([story.begins_at]).min();
    first.unwrap_or(story.begins_at).min(story.begins_at) - TimeDelta::seconds(60)
}

/// What is known from before the story.
pub(crate) enum Past<'a> {
    Seen(&'a Seen),
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
