//! The backend of the host's workloads, as it really is. Knows nothing of `decide`, so that it can show it wrong.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Finding, MoveReport, ObservedState, Outcome, Workload, WorkloadState, WorkloadStep};

/// The host that all stories are about, as its backend calls it.
pub const HOST: &str = "compute1";

/// One workload in the backend.
#[derive(Clone, Debug)]
pub struct Server {
    pub workload: Workload,
    pub on: String,
    /// How often a move of it still fails.
    pub fails: u32,
}

/// A move that the backend has carried out.
#[derive(Clone, Debug)]
pub struct Start {
    pub id: String,
    /// Whether nothing of it could run on the host at that moment.
    pub was_safe: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Cloud {
    pub servers: BTreeMap<String, Server>,
    /// Hosts that take workloads.
    pub open: BTreeSet<String>,
    pub forced_down: bool,
    /// Does not answer at all.
    pub is_away: bool,
    /// Everything that was started elsewhere, in order.
    pub started: Vec<Start>,
}

impl Cloud {
    /// So many servers on the host, and one more host with room.
    pub fn with(count: usize) -> Self {
        let mut cloud = Self::default();
        for number in 1..=count {
            cloud.add(&format!("web-{number}"), &[]);
        }
        cloud.open.insert("compute2".to_owned());
        cloud
    }

    pub fn add(&mut self, name: &str, metadata: &[(&str, &str)]) {
        let metadata = metadata
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let workload = Workload {
            id: name.to_owned(),
            name: name.to_owned(),
            state: WorkloadState::Running,
            metadata,
        };
        let server = Server {
            workload,
            on: HOST.to_owned(),
            fails: 0,
        };
        self.servers.insert(name.to_owned(), server);
    }

    pub fn server(&mut self, name: &str) -> &mut Server {
        self.servers.get_mut(name).expect("a server of that name")
    }

    pub fn on(&self, host: &str) -> Vec<&str> {
        let mine = self.servers.values().filter(|server| server.on == host);
        mine.map(|server| server.workload.name.as_str()).collect()
    }

    /// A worker acts. It looks first, as every driver does.
    pub fn command(&mut self, step: &WorkloadStep, is_safe: bool) {
        if self.is_away {
            return;
        }
        match step {
            WorkloadStep::MarkDown => self.forced_down = true,
            WorkloadStep::MarkUp => self.forced_down = false,
            WorkloadStep::AddCapacity { host } => {
                self.open.insert(host.clone());
            }
            WorkloadStep::Move(step) if step.only_look => {}
            WorkloadStep::Move(step) => self.start_elsewhere(&step.workload.id, is_safe),
            WorkloadStep::Isolate
            | WorkloadStep::List { .. }
            | WorkloadStep::Empty
            | WorkloadStep::CleanUp
            | WorkloadStep::Start { .. } => {}
        }
    }

    fn start_elsewhere(&mut self, id: &str, was_safe: bool) {
        let to = self.open.first().cloned();
        let (Some(server), Some(to)) = (self.servers.get_mut(id), to) else {
            return;
        };
        if server.on != HOST {
            return;
        }
        if server.fails > 0 {
            server.fails -= 1;
            return;
        }
        server.on = to;
        self.started.push(Start {
            id: id.to_owned(),
            was_safe,
        });
    }

    /// What a worker reports after it has acted.
    pub fn report(&self, step: &WorkloadStep) -> (Outcome, Option<ObservedState>, Option<Finding>) {
        if self.is_away {
            return (Outcome::Unknown, None, Some(Finding::Away));
        }
        let done = |finding| (Outcome::Confirmed, Some(ObservedState::Done), finding);
        match step {
            WorkloadStep::List { .. } => done(Some(Finding::Workloads(self.listed()))),
            WorkloadStep::Move(step) => {
                let id = &step.workload.id;
                let finding = Some(Finding::Move(self.became(id)));
                let is_there = self.servers.get(id).is_some_and(|server| server.on == HOST);
                match is_there {
                    true if self.open.is_empty() => (Outcome::Refused, None, finding),
                    true => (Outcome::Unknown, None, finding),
                    false => done(finding),
                }
            }
            WorkloadStep::Isolate
            | WorkloadStep::MarkDown
            | WorkloadStep::MarkUp
            | WorkloadStep::Empty
            | WorkloadStep::AddCapacity { .. }
            | WorkloadStep::CleanUp
            | WorkloadStep::Start { .. } => done(None),
        }
    }

    fn listed(&self) -> Vec<Workload> {
        let mine = self.servers.values().filter(|server| server.on == HOST);
        mine.map(|server| server.workload.clone()).collect()
    }

    fn became(&self, id: &str) -> MoveReport {
        let server = self.servers.get(id);
        MoveReport {
            to: server
                .filter(|server| server.on != HOST)
                .map(|server| server.on.clone()),
            request_id: Some("req-1".to_owned()),
            no_room: self.open.is_empty(),
            ..MoveReport::default()
        }
    }
}
