//! An incident from recorded events: what was seen of the hosts, what was asked for, and which fences it came to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::TimeDelta;
use ringfence_core::{ConditionStatus, FailureState, HostId, Timestamp};
use ringfence_simulation::{Happening, MAX_HAPPENINGS, MAX_LASTS, Site, Story, What};
use serde::Deserialize;
use serde_json::Value;

use crate::client::view::Event;
use crate::client::{Client, Request};
use crate::commands::document::text;
use crate::commands::session::views;
use crate::error::CliError;

/// The largest file of events, in MiB.
const MAX_FILE_MIB: u64 = 64;
/// The most events of an incident that are read.
const MAX_EVENTS: usize = 100_000;
/// The longest page of the API.
const PAGE: u32 = 1_000;
/// How long it is followed after the last event: what was under way then ends.
const FOLLOWED_FOR: TimeDelta = TimeDelta::minutes(30);
/// Who asks for what begins by itself.
const BY_ITSELF: &str = "ringfence";

/// What was recorded.
pub struct Incident {
    pub begins_at: Timestamp,
    pub ends_at: Timestamp,
    events: Vec<Event>,
}

impl Incident {
    /// From a file of events, as `ringfence event list` or `tail` writes them with `--output json`. Without a range, all of it.
    pub fn of_file(path: &Path, from: Option<Timestamp>, to: Option<Timestamp>) -> Result<Self, CliError> {
        let text = text(path, MAX_FILE_MIB)?;
        let mut events = read(&text).map_err(|why| CliError::content(path, why))?;
        events.sort_by_key(|event| event.sequence);
        let times = || events.iter().map(|event| event.occurred_at);
        let begins_at = from.or_else(|| times().min());
        let ends_at = to.or_else(|| times().max());
        let (Some(begins_at), Some(ends_at)) = (begins_at, ends_at) else {
            return Err(CliError::content(path, "holds no event"));
        };
        events.retain(|event| (begins_at..=ends_at).contains(&event.occurred_at));
        Self {
            begins_at,
            ends_at,
            events,
        }
        .checked(&format!("of {}", path.display()))
    }

    /// From the service.
    pub async fn of_service(client: &Client, from: Timestamp, to: Timestamp) -> Result<Self, CliError> {
        if from >= to {
            return Err(CliError::Usage(format!(
                "--events-from: is {from}, which is not before {to}; a time before --events-to is allowed"
            )));
        }
        let mut after = first_before(client, from).await?;
        let mut events: Vec<Event> = Vec::new();
        loop {
            let page = page(client, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            let (number, is_over) = (last.sequence, last.occurred_at > to || page.len() < PAGE as usize);
            let within = page
                .into_iter()
                .filter(|event| (from..=to).contains(&event.occurred_at));
            events.extend(within);
            if is_over {
                break;
            }
            if events.len() > MAX_EVENTS {
                return Err(CliError::Usage(format!(
                    "there are more than {MAX_EVENTS} events from {from} to {to}; a shorter range is allowed"
                )));
            }
            after = number;
        }
        Self {
            begins_at: from,
            ends_at: to,
            events,
        }
        .checked("that the service keeps")
    }

    fn checked(self, whose: &str) -> Result<Self, CliError> {
        let Self {
            begins_at, ends_at, ..
        } = &self;
        if ends_at.signed_duration_since(begins_at) > MAX_LASTS {
            let days = MAX_LASTS.num_days();
            return Err(CliError::Usage(format!(
                "the events {whose} are from {begins_at} to {ends_at}; a range of at most {days} days is allowed, with --events-from and --events-to"
            )));
        }
        let is_sight = |event: &Event| happening(event).is_some();
        if !self.events.iter().any(is_sight) {
            return Err(CliError::Missing(format!(
                "no event {whose} from {begins_at} to {ends_at} says that a host was seen otherwise, had a condition, or was asked to be fenced or rejoined\n  ringfence event list shows the events that there are"
            )));
        }
        Ok(self)
    }

    /// The story, with the hosts as they stood when it began. What the copy says of later times is taken out of it.
    pub fn story(&self, site: &mut Site, lasts: Option<TimeDelta>) -> Result<(Story, Vec<String>), CliError> {
        let ids: BTreeMap<String, HostId> = site
            .copy
            .hosts
            .iter()
            .map(|host| (host.name.clone(), host.id))
            .collect();
        let mut happenings = Vec::new();
        let mut gone = BTreeSet::new();
        for event in &self.events {
            let Some((at, what)) = happening(event) else {
                continue;
            };
            let Some(name) = &event.host else { continue };
            match ids.get(name) {
                Some(host_id) => happenings.push(Happening {
                    after: (at - self.begins_at).max(TimeDelta::zero()),
                    host_id: *host_id,
                    what,
                }),
                None => drop(gone.insert(name.clone())),
            }
        }
        if happenings.len() > MAX_HAPPENINGS {
            let count = happenings.len();
            return Err(CliError::Usage(format!(
                "the events hold {count} changes of hosts; at most {MAX_HAPPENINGS} are allowed: a shorter range"
            )));
        }
        self.take_back(site);
        let mut notes = vec![
            "hosts stood at the beginning as the events and the present state tell; suspensions are left out"
                .to_owned(),
        ];
        if !gone.is_empty() {
            let names = gone.into_iter().collect::<Vec<_>>().join(", ");
            notes.push(format!(
                "hosts of the events that are there no more are left out: {names}"
            ));
        }
        let story = Story {
            begins_at: self.begins_at,
            lasts: lasts.unwrap_or(self.ends_at - self.begins_at + FOLLOWED_FOR),
            happenings,
        };
        Ok((story, notes))
    }

    /// Has the hosts stand as they did when the incident began, as far as that can be told.
    fn take_back(&self, site: &mut Site) {
        let mut first: BTreeMap<&str, FailureState> = BTreeMap::new();
        for event in &self.events {
            let from = event.data["from"].as_str().and_then(FailureState::from_word);
            if let (Some(host), Some(from), "host.failure_state") = (&event.host, from, event.kind.as_str()) {
                first.entry(host).or_insert(from);
            }
        }
        site.being_fenced.clear();
        site.copy.everything = None;
        site.copy.suspensions.clear();
        for host in &mut site.copy.hosts {
            host.suspension = None;
            host.created_at = host.created_at.min(self.begins_at - TimeDelta::days(1));
            host.updated_at = host.created_at;
            let was_fenced = host.fence.as_ref().is_some_and(|fence| fence.at < self.begins_at);
            if !was_fenced {
                host.fence = None;
            }
            let Some(seen) = site.seen.get_mut(&host.id) else {
                continue;
            };
            let was_so = seen.since.is_some_and(|since| since < self.begins_at);
            let known = if was_so { seen.state } else { FailureState::Up };
            seen.state = first.get(host.name.as_str()).copied().unwrap_or(known);
            seen.since = seen.since.filter(|_| was_so);
            seen.conditions
                .retain(|(_, _, condition)| condition.since < self.begins_at);
            host.is_silence_answered =
                host.is_silence_answered && was_so && seen.state == FailureState::Unreachable;
        }
    }

    /// When hosts became FENCED in the incident, by name.
    pub fn fences(&self) -> BTreeMap<String, Vec<Timestamp>> {
        let mut fences: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.kind == "host.fenced") {
            if let Some(host) = &event.host {
                fences.entry(host.clone()).or_default().push(event.occurred_at);
            }
        }
        fences
    }
}

/// One answer of the API, or a line for each event.
fn read(text: &str) -> Result<Vec<Event>, String> {
    if let Ok(list) = serde_json::from_str::<Value>(text)
        && list.get("events").is_some()
    {
        return Vec::<Event>::deserialize(&list["events"])
            .map_err(|error| format!("holds no events: {error}"));
    }
    let mut events = Vec::new();
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        if events.len() >= MAX_EVENTS {
            return Err(format!("holds more than {MAX_EVENTS} events"));
        }
        let event = serde_json::from_str(line);
        events.push(event.map_err(|error| {
            format!(
                "line {} is no event: {error}; what `ringfence event list` or `tail` writes with `--output json` is allowed",
                at + 1
            )
        })?);
    }
    Ok(events)
}

/// What happened to the host from outside, and when.
fn happening(event: &Event) -> Option<(Timestamp, What)> {
    let text = |key: &str| event.data[key].as_str();
    let at = event.occurred_at;
    let is_asked_for = || text("requested_by").is_some_and(|by| by != BY_ITSELF);
    match event.kind.as_str() {
        "host.failure_state" => {
            let state = FailureState::from_word(text("to")?)?;
            Some((at, What::Seen(state)))
        }
        "host.condition" => {
            let is_over = event.data["action"].is_null();
            let since = text("since").and_then(|since| since.parse().ok());
            let status = if is_over {
                ConditionStatus::False
            } else {
                ConditionStatus::from_word(text("status")?)?
            };
            let what = What::Condition {
                source: text("source").map(str::to_owned),
                name: text("condition")?.to_owned(),
                status,
            };
            Some((since.filter(|_| !is_over).unwrap_or(at), what))
        }
        "operation.started" if is_asked_for() => match text("kind")? {
            "fence" => Some((at, What::Fence)),
            "rejoin" => Some((at, What::Rejoin)),
            _ => None,
        },
        _ => None,
    }
}

async fn page(client: &Client, after: u64, limit: u32) -> Result<Vec<Event>, CliError> {
    let request = Request::get(&["events"])
        .with("after", Some(after))
        .with("limit", Some(limit));
    views(&client.send(request).await?.body, "events")
}

/// The number of an event before which none is of the time from `from` on. Numbers and times grow together.
async fn first_before(client: &Client, from: Timestamp) -> Result<u64, CliError> {
    let newest = Request::get(&["events"])
        .with("limit", Some(1))
        .with("sort", Some("sequence:desc"));
    let answer = client.send(newest).await?.body;
    let mut low = answer["removed_up_to"].as_u64().unwrap_or_default();
    let newest: Vec<Event> = views(&answer, "events")?;
    let mut high = newest.first().map_or(low, |event| event.sequence);
    // All up to `low` are before, or gone.
    while low < high {
        let middle = low + (high - low) / 2;
        match page(client, middle, 1).await?.first() {
            Some(event) if event.occurred_at < from => low = event.sequence.min(high),
            _ => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(sequence: u64, kind: &str, host: &str, at: &str, data: Value) -> Value {
        json!({ "sequence": sequence, "id": "e", "type": kind, "host": host, "generation": 1, "occurred_at": at, "data": data })
    }

    fn some() -> Vec<Value> {
        let seen = json!({ "from": "UP", "to": "UNREACHABLE" });
        let held = json!({ "source": "k8s", "condition": "KernelDeadlock", "status": "True", "action": "fence", "since": "2026-01-31T12:00:10Z" });
        vec![
            event(1, "host.failure_state", "h1", "2026-01-31T12:00:00Z", seen),
            event(2, "host.condition", "h2", "2026-01-31T12:01:10Z", held),
            event(
                3,
                "operation.started",
                "h1",
                "2026-01-31T12:02:00Z",
                json!({ "kind": "fence", "requested_by": "ringfence" }),
            ),
            event(4, "host.fenced", "h1", "2026-01-31T12:03:00Z", json!({})),
            event(
                5,
                "operation.started",
                "h1",
                "2026-01-31T12:04:00Z",
                json!({ "kind": "rejoin", "requested_by": "alice" }),
            ),
        ]
    }

    #[test]
    fn events_are_read_as_they_are_listed_and_as_they_are_followed() {
        let list = json!({ "events": some(), "links": [] }).to_string();
        let lines: Vec<String> = some().iter().map(Value::to_string).collect();
        for text in [list, lines.join("\n")] {
            let events = read(&text).unwrap();
            let told: Vec<_> = events.iter().filter_map(happening).collect();
            let at = |text: &str| text.parse::<Timestamp>().unwrap();
            assert_eq!(told.len(), 3);
            assert_eq!(
                told[0],
                (at("2026-01-31T12:00:00Z"), What::Seen(FailureState::Unreachable))
            );
            assert_eq!(
                told[1].0,
                at("2026-01-31T12:00:10Z"),
                "a condition is told of when it came"
            );
            assert_eq!(told[2], (at("2026-01-31T12:04:00Z"), What::Rejoin));
        }
        assert!(read("{\"a\":1}\n").unwrap_err().starts_with("line 1 is no event"));
    }
}
