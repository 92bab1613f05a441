//! What is read for the screen.

use serde::Deserialize;

use crate::client::view::{LiveOperation, Operation};

/// All hosts, briefly.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Overview {
    pub segments: Vec<Segment>,
}

/// A segment with its hosts.
#[derive(Clone, Debug, Deserialize)]
pub struct Segment {
    pub name: String,
    #[serde(default)]
    pub is_automatic: bool,
    #[serde(default)]
    pub is_suspended: bool,
    #[serde(default)]
    pub hosts: Vec<BriefHost>,
}

/// A host, briefly.
#[derive(Clone, Debug, Deserialize)]
pub struct BriefHost {
    pub name: String,
    pub failure_state: String,
    pub fencing_state: String,
    pub operation: Option<LiveOperation>,
    #[serde(default)]
    pub marks: Vec<String>,
}

impl BriefHost {
    pub fn is(&self, mark: &str) -> bool {
        self.marks.iter().any(|one| one == mark)
    }

    pub fn is_fenced(&self) -> bool {
        self.fencing_state == "FENCED"
    }

    pub fn is_silent(&self) -> bool {
        self.failure_state == "UNREACHABLE"
    }
}

/// What the first screen is made of.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub overview: Overview,
    pub waiting: Vec<Operation>,
    pub running: Vec<Operation>,
    pub held: Vec<Operation>,
}

/// One thing that needs a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub what: String,
    pub why: String,
    pub todo: String,
    pub operation: Option<String>,
}

impl Site {
    /// What needs a person, the most urgent first: operations that wait, proofs that have ended, silence that no fence answers, hosts that are back.
    pub fn needs(&self) -> Vec<Need> {
        let waiting = self.waiting.iter().map(of_operation);
        let hosts = || {
            let segments = self.overview.segments.iter();
            segments.flat_map(|segment| segment.hosts.iter().map(move |host| (segment, host)))
        };
        let free = |host: &BriefHost| host.operation.is_none();
        let ended = hosts()
            .filter(|(_, host)| free(host) && host.is("proof_ended"))
            .map(|(_, host)| {
                need(
                    host,
                    "FENCED, and its proof has ended",
                    "its evacuate gate is closed",
                    "look why it was seen, then fence it again",
                )
            });
        let silent = hosts()
            .filter(|(segment, host)| {
                let is_paused = segment.is_suspended || host.is("suspended");
                host.is_silent() && !host.is_fenced() && free(host) && !segment.is_automatic && !is_paused
            })
            .map(|(segment, host)| {
                let why = format!("segment {} fences only if asked", segment.name);
                need(
                    host,
                    "UNREACHABLE, and no fence begins by itself",
                    &why,
                    "look whether it is dead; if so, fence it",
                )
            });
        let back = hosts()
            .filter(|(_, host)| {
                host.is_fenced() && host.failure_state == "UP" && free(host) && !host.is("proof_ended")
            })
            .map(|(_, host)| {
                need(
                    host,
                    "FENCED, and UP again",
                    "it gets no workloads while it is FENCED",
                    "look why it was fenced; if that is mended, rejoin it",
                )
            });
        waiting.chain(ended).chain(silent).chain(back).collect()
    }

    /// Hosts that are seen so, of all.
    pub fn count(&self, is_it: impl Fn(&BriefHost) -> bool) -> usize {
        let hosts = self.overview.segments.iter().flat_map(|segment| &segment.hosts);
        hosts.filter(|host| is_it(host)).count()
    }
}

fn of_operation(operation: &Operation) -> Need {
    let todo = if operation.is_held_by_brake {
        "if the hosts are dead, release it: ringfence operation retry"
    } else if operation.kind == "fence" {
        "mend the device and retry; or see by hand that it is off, and confirm it"
    } else {
        "mend what failed, then retry"
    };
    Need {
        what: format!("{}: its {} waits for you", operation.host_name(), operation.kind),
        why: operation.detail.clone(),
        todo: todo.to_owned(),
        operation: Some(operation.id.clone()),
    }
}

fn need(host: &BriefHost, what: &str, why: &str, todo: &str) -> Need {
    Need {
        what: format!("{}: {what}", host.name),
        why: why.to_owned(),
        todo: todo.to_owned(),
        operation: None,
    }
}
