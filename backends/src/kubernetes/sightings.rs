//! What was seen of a cluster's nodes, and when.
//!
//! A lease carries the time of the clock of its holder, which may be wrong. So the time that counts is the time at which it was seen to
//! change. That anything changes at all shows that the cluster can be written, and that its changes arrive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use ringfence_core::{BootSign, Labels, Poll, ReportedCondition, Sign, Timestamp};
use tokio::time::Instant;

use super::objects::Ready;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    ready: Ready,
}

/// A node's lease.
#[derive(Clone, Debug)]
struct Renewal {
    written: Option<String>,
    /// When it was seen to change, or first seen.
    seen_at: Instant,
    /// Whether it was seen to change: what was there before says nothing of when it came.
    has_changed: bool,
}

/// The marks of one node, as the cluster showed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenMarks {
    /// The node's version.
    pub version: Option<String>,
    /// Whether it is marked as one of Ringfence's hosts.
    pub is_host: bool,
    /// Whether it has a mark of Ringfence that keeps pods off it.
    pub is_kept_off: bool,
    /// Whether it has all marks of a node that is kept isolated.
    pub is_isolated: bool,
    /// Whether Ringfence has taken it out of service, and others have put it back.
    pub was_put_back: bool,
}

/// All nodes of one cluster.
#[derive(Debug)]
pub(super) struct Sightings {
    begun: Instant,
    down_after: Duration,
    nodes: BTreeMap<String, Seen>,
    marks: BTreeMap<String, SeenMarks>,
    /// What kubelets have written down of the boots of their nodes.
    boots: BTreeMap<String, BootSign>,
    /// The types of nodes that have one.
    types: BTreeMap<String, String>,
    /// Those labels of nodes that matter.
    labels: BTreeMap<String, Arc<Labels>>,
    /// The conditions of all nodes.
    conditions: BTreeMap<String, Arc<[ReportedCondition]>>,
    renewals: BTreeMap<String, Renewal>,
    /// The leases of the cluster's own services, and of whatever else uses leases.
    others: BTreeMap<String, Option<String>>,
    /// When a lease was last seen to change.
    heard_at: Option<Instant>,
    /// No node has been silent for long enough before that, of those that had not been so when they were looked through last.
    none_before: Instant,
}

impl Sightings {
    pub fn new(down_after: Duration, now: Instant) -> Self {
        Self {
            begun: now,
            down_after,
            nodes: BTreeMap::new(),
            marks: BTreeMap::new(),
            boots: BTreeMap::new(),
            types: BTreeMap::new(),
            labels: BTreeMap::new(),
            conditions: BTreeMap::new(),
            renewals: BTreeMap::new(),
            others: BTreeMap::new(),
            heard_at: None,
            none_before: now,
        }
    }

    /// Takes a node as it is now. `true` if that is worth a look.
    pub fn node(&mut self, name: &str, ready: Ready) -> bool {
        let seen = Seen { ready };
        let known = self.nodes.insert(name.to_owned(), seen.clone());
        known != Some(seen)
    }

    /// Takes a node's marks as they are now. `true` if that is worth a look: some are gone.
    pub fn node_marks(&mut self, name: &str, marks: SeenMarks) -> bool {
        let known = self.marks.insert(name.to_owned(), marks.clone());
        known.is_some_and(|known| {
            (known.is_isolated && !marks.is_isolated) || (!known.was_put_back && marks.was_put_back)
        })
    }

    /// Takes a node's boot as it is now. `true` if that is worth a look: it is another one.
    pub fn node_boot(&mut self, name: &str, boot: Option<BootSign>) -> bool {
        let Some(boot) = boot else {
            return self.boots.remove(name).is_some();
        };
        let id = boot.id.clone();
        let known = self.boots.insert(name.to_owned(), boot);
        known.is_some_and(|known| known.id != id)
    }

    /// Takes a node's type as it is now.
    pub fn node_type(&mut self, name: &str, host_type: Option<String>) {
        match host_type {
            Some(host_type) => drop(self.types.insert(name.to_owned(), host_type)),
            None => drop(self.types.remove(name)),
        }
    }

    /// Takes a node's labels as they are now. `true` if that is worth a look: they are others.
    pub fn node_labels(&mut self, name: &str, labels: Labels) -> bool {
        if self.labels.get(name).is_some_and(|known| **known == labels) {
            return false;
        }
        self.labels.insert(name.to_owned(), labels.into());
        true
    }

    /// Takes a node's conditions as they are now. `true` if that is worth a look: they are others.
    pub fn node_conditions(&mut self, name: &str, conditions: Vec<ReportedCondition>) -> bool {
        let known = self.conditions.get(name);
        if known.is_some_and(|known| **known == *conditions) {
            return false;
        }
        self.conditions.insert(name.to_owned(), conditions.into());
        true
    }

    /// The marks of all nodes.
    pub fn marks(&self) -> &BTreeMap<String, SeenMarks> {
        &self.marks
    }

    /// Takes that a node is gone.
    pub fn no_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.marks.remove(name);
        self.boots.remove(name);
        self.types.remove(name);
        self.labels.remove(name);
        self.conditions.remove(name);
        self.renewals.remove(name);
    }

    /// Takes that there are no other nodes.
    pub fn only_nodes(&mut self, is_there: impl Fn(&str) -> bool) {
        self.nodes.retain(|name, _| is_there(name));
        self.marks.retain(|name, _| is_there(name));
        self.boots.retain(|name, _| is_there(name));
        self.types.retain(|name, _| is_there(name));
        self.labels.retain(|name, _| is_there(name));
        self.conditions.retain(|name, _| is_there(name));
        self.renewals.retain(|name, _| is_there(name));
    }

    /// Takes a node's lease as it is now. `true` if that is worth a look: a node that was silent is heard again, or another one has been
    /// silent for long enough.
    pub fn node_lease(&mut self, node: &str, written: Option<String>, now: Instant) -> bool {
        let Some(known) = self.renewals.get_mut(node) else {
            let first = Renewal {
                written,
                seen_at: now,
                has_changed: false,
            };
            self.renewals.insert(node.to_owned(), first);
            return false;
        };
        if known.written == written {
            return false;
        }
        // Before its first change it may have been silent for as long as it will. One that renews its lease in time is heard by the looks
        // in turn.
        let was_silent = !known.has_changed || now - known.seen_at >= self.down_after;
        *known = Renewal {
            written,
            seen_at: now,
            has_changed: true,
        };
        self.hear(now) || was_silent
    }

    /// Takes another lease as it is now, by its version. `true` if that is worth a look: a node has been silent for long enough.
    pub fn other_lease(&mut self, name: &str, written: Option<String>, now: Instant) -> bool {
        match self.others.insert(name.to_owned(), written.clone()) {
            Some(known) if known != written => self.hear(now),
            Some(_) | None => false,
        }
    }

    /// Takes that another lease is gone.
    pub fn no_other_lease(&mut self, name: &str) {
        self.others.remove(name);
    }

    /// Takes that a lease has changed. `true` if a node has been silent for long enough by now, and was not when one changed last.
    fn hear(&mut self, now: Instant) -> bool {
        let before = self.heard_at.replace(now).unwrap_or(self.begun);
        // Thousands of leases change in the time of a silence: they are not all looked through at each change.
        if now < self.none_before {
            return false;
        }
        self.none_before = self.next_due(now).unwrap_or(now + self.down_after);
        let falls_silent = |renewal: &Renewal| {
            let due = renewal.seen_at + self.down_after;
            before < due && due <= now
        };
        self.renewals.values().any(falls_silent)
    }

    /// The next moment at which a node has been silent for long enough.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        let due = |renewal: &Renewal| renewal.seen_at + self.down_after;
        self.renewals.values().map(due).filter(|due| *due > now).min()
    }

    /// The nodes in the terms of the rules.
    pub fn poll(&self) -> Poll {
        let sign = |(name, seen): (&String, &Seen)| Sign {
            host: name.clone(),
            last: self.last(name),
            // The cluster itself waits until it has heard nothing for its own time; a kubelet that reports a fault is alive.
            is_up: seen.ready != Ready::Unknown && !self.was_silent(name),
            is_marked_down: false,
            settings: String::new(),
            boot: self.boots.get(name).cloned(),
            host_type: self.types.get(name).cloned(),
            labels: Some(self.labels.get(name).cloned().unwrap_or_default()),
            is_on_record: self.marks.get(name).is_some_and(|marks| marks.is_host),
            is_kept_off: self.marks.get(name).is_some_and(|marks| marks.is_kept_off),
            conditions: self.conditions.get(name).cloned().unwrap_or_default(),
        };
        Poll {
            hosts: self.nodes.iter().map(sign).collect(),
            own: self.heard_at.map(|at| self.time(at)),
        }
    }

    fn last(&self, node: &str) -> Option<Timestamp> {
        let renewal = self.renewals.get(node).filter(|renewal| renewal.has_changed)?;
        Some(self.time(renewal.seen_at))
    }

    /// Whether the node was silent before the watch began, and has been since.
    fn was_silent(&self, node: &str) -> bool {
        let renewal = self.renewals.get(node).filter(|renewal| !renewal.has_changed);
        let watched = renewal.zip(self.heard_at);
        watched.is_some_and(|(renewal, heard_at)| heard_at >= renewal.seen_at + self.down_after)
    }

    /// By a clock that begins with the watch: all signs of a cluster are told by one clock.
    fn time(&self, at: Instant) -> Timestamp {
        let passed = TimeDelta::from_std(at.saturating_duration_since(self.begun));
        DateTime::UNIX_EPOCH + passed.unwrap_or(TimeDelta::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN_AFTER: Duration = Duration::from_secs(20);

    fn at(written: u32) -> Option<String> {
        Some(format!("2026-11-25T12:00:{written:02}.000000Z"))
    }

    fn after(begun: Instant, seconds: u64) -> Instant {
        begun + Duration::from_secs(seconds)
    }

    fn last(sightings: &Sightings, node: &str) -> Option<i64> {
        let poll = sightings.poll();
        let sign = poll.hosts.iter().find(|sign| sign.host == node).unwrap();
        sign.last.map(|at| at.timestamp())
    }

    #[test]
    fn the_time_of_a_sign_is_when_it_was_seen_to_change_and_not_what_is_written() {
        let begun = Instant::now();
        let mut sightings = Sightings::new(DOWN_AFTER, begun);
        sightings.node("n1", Ready::Yes);
        sightings.node_lease("n1", at(1), after(begun, 3));
        sightings.node_lease("n1", at(1), after(begun, 9));
        assert_eq!(last(&sightings, "n1"), None, "it may have been written long ago");
        sightings.node_lease("n1", at(0), after(begun, 10));
        assert_eq!(last(&sightings, "n1"), Some(10));
    }

    #[test]
    fn the_labels_of_a_node_are_news_when_they_change() {
        let mut sightings = Sightings::new(DOWN_AFTER, Instant::now());
        sightings.node("n1", Ready::Yes);
        let rack = |value: &str| Labels::from([("topology.rook.io/rack".to_owned(), value.to_owned())]);
        assert!(sightings.node_labels("n1", rack("r1")));
        assert!(!sightings.node_labels("n1", rack("r1")));
        assert!(sightings.node_labels("n1", rack("r2")));
        let told = sightings.poll().hosts[0].labels.clone().unwrap();
        assert_eq!(*told, rack("r2"));
    }

    #[test]
    fn a_node_is_of_the_type_that_its_label_has_now() {
        let mut sightings = Sightings::new(DOWN_AFTER, Instant::now());
        sightings.node("n1", Ready::Yes);
        let host_type = |sightings: &Sightings| sightings.poll().hosts[0].host_type.clone();
        sightings.node_type("n1", Some("gpu".to_owned()));
        assert_eq!(host_type(&sightings).as_deref(), Some("gpu"));
        sightings.node_type("n1", None);
        assert_eq!(host_type(&sightings), None);
    }

    #[test]
    fn a_node_shows_the_boot_that_its_kubelet_has_written_and_another_one_is_worth_a_look() {
        let mut sightings = Sightings::new(DOWN_AFTER, Instant::now());
        sightings.node("n1", Ready::Yes);
        let boot = |id: &str, written: &str| {
            let (id, written) = (id.to_owned(), written.to_owned());
            Some(BootSign { id, written })
        };
        assert!(!sightings.node_boot("n1", boot("a", "12:00:00")));
        assert!(!sightings.node_boot("n1", boot("a", "12:05:00")));
        assert_eq!(sightings.poll().hosts[0].boot, boot("a", "12:05:00"));
        assert!(sightings.node_boot("n1", boot("b", "12:06:00")));
        assert!(sightings.node_boot("n1", None));
        assert_eq!(sightings.poll().hosts[0].boot, None);
        sightings.node_boot("n1", boot("b", "12:07:00"));
        sightings.no_node("n1");
        sightings.node("n1", Ready::Yes);
        assert_eq!(
            sightings.poll().hosts[0].boot,
            None,
            "another object of this name"
        );
    }

    #[test]
    fn a_cluster_in_which_no_lease_changes_gives_no_sign_of_its_own() {
        let begun = Instant::now();
        let mut sightings = Sightings::new(DOWN_AFTER, begun);
        for second in 0..60 {
            sightings.node_lease("n1", at(1), after(begun, second));
            sightings.other_lease("kube-system/kube-scheduler", at(1), after(begun, second));
        }
        assert_eq!(sightings.poll().own, None);
        sightings.other_lease("kube-system/kube-scheduler", at(2), after(begun, 61));
        assert_eq!(sightings.poll().own.unwrap().timestamp(), 61);
    }

    #[test]
    fn a_node_that_falls_silent_and_a_node_that_is_heard_again_are_worth_a_look() {
        let begun = Instant::now();
        let mut sightings = Sightings::new(DOWN_AFTER, begun);
        sightings.node_lease("n1", at(0), begun);
        sightings.other_lease("other", at(0), begun);
        assert!(!sightings.other_lease("other", at(1), after(begun, 19)));
        assert_eq!(sightings.next_due(after(begun, 19)), Some(after(begun, 20)));
        assert!(sightings.other_lease("other", at(2), after(begun, 21)));
        assert!(!sightings.other_lease("other", at(3), after(begun, 22)));
        assert_eq!(sightings.next_due(after(begun, 22)), None);
        assert!(sightings.node_lease("n1", at(1), after(begun, 23)));
        assert!(!sightings.node_lease("n1", at(2), after(begun, 24)));
        assert!(
            !sightings.node_lease("n1", at(3), after(begun, 43)),
            "renewed in time"
        );
        assert!(sightings.node_lease("n1", at(4), after(begun, 63)));
    }

    #[test]
    fn a_node_that_is_heard_for_the_first_time_is_worth_a_look() {
        let begun = Instant::now();
        let mut sightings = Sightings::new(DOWN_AFTER, begun);
        assert!(!sightings.node_lease("n1", at(0), begun), "it may be old");
        assert!(sightings.node_lease("n1", at(1), after(begun, 3)));
        assert!(!sightings.node_lease("n1", at(2), after(begun, 13)));
    }

    #[test]
    fn each_node_that_falls_silent_is_worth_a_look_once() {
        let begun = Instant::now();
        let mut sightings = Sightings::new(DOWN_AFTER, begun);
        for (node, seen) in [("n1", 0), ("n2", 7), ("n3", 12)] {
            sightings.node_lease(node, at(0), after(begun, seen));
        }
        let looks: Vec<u64> = (1..60)
            .filter(|second| {
                let written = Some(second.to_string());
                sightings.other_lease("other", written, after(begun, *second))
            })
            .collect();
        assert_eq!(looks, [20, 27, 32]);
    }

    #[test]
    fn a_kubelet_that_reports_a_fault_is_alive() {
        let mut sightings = Sightings::new(DOWN_AFTER, Instant::now());
        for (name, ready) in [("yes", Ready::Yes), ("no", Ready::No), ("silent", Ready::Unknown)] {
            assert!(sightings.node(name, ready));
            assert!(!sightings.node(name, ready));
        }
        let up: Vec<bool> = sightings.poll().hosts.iter().map(|sign| sign.is_up).collect();
        assert_eq!(up, [true, false, true], "no, silent, yes");
    }

    #[test]
    fn a_node_that_was_silent_before_the_watch_began_is_so_after_a_while_and_gives_no_sign() {
        let begun = Instant::now();
        let mut sightings = Sightings::new(DOWN_AFTER, begun);
        sightings.node("n1", Ready::Yes);
        sightings.node_lease("n1", at(0), begun);
        sightings.other_lease("other", at(0), begun);
        for (second, is_up) in [(19, true), (20, false)] {
            sightings.other_lease("other", at(second), after(begun, second.into()));
            assert_eq!(sightings.poll().hosts[0].is_up, is_up, "after {second} s");
        }
        assert_eq!(last(&sightings, "n1"), None);
        sightings.node_lease("n1", at(21), after(begun, 21));
        assert!(sightings.poll().hosts[0].is_up);
        assert_eq!(last(&sightings, "n1"), Some(21));
    }

    #[test]
    fn a_node_that_was_made_again_is_one_host() {
        let mut sightings = Sightings::new(DOWN_AFTER, Instant::now());
        sightings.node("n1", Ready::Yes);
        sightings.no_node("n1");
        assert!(sightings.poll().hosts.is_empty());
        assert!(sightings.node("n1", Ready::Unknown));
        assert_eq!(sightings.poll().hosts.len(), 1);
    }
}
