//! The backend of the host's workloads, as it really is. Knows nothing of `decide`, so that it can show it wrong.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Finding, MoveReport, ObservedState, Outcome, TaskKind, Workload, WorkloadState};

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
    pub fn command(&mut self, kind: TaskKind, host: &str, workload: Option<&Workload>, is_safe: bool) {
        if self.is_away {
            return;
        }
        match kind {
            TaskKind::WorkloadsForceDown => self.forced_down = true,
            TaskKind::WorkloadsForceUp => self.forced_down = false,
            TaskKind::WorkloadsAddSpare => {
                self.open.insert(host.to_owned());
            }
            TaskKind::WorkloadsMove => self.start_elsewhere(workload.map_or("", |w| &w.id), is_safe),
            _ => {}
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
    pub fn report(
        &self,
        kind: TaskKind,
        workload: Option<&Workload>,
    ) -> (Outcome, Option<ObservedState>, Option<Finding>) {
        if self.is_away {
            return (Outcome::Unknown, None, None);
        }
        let finding = match kind {
            TaskKind::WorkloadsList => Some(Finding::Workloads(self.listed())),
            TaskKind::WorkloadsMove => Some(Finding::Move(self.became(workload))),
            _ => None,
        };
        let is_there = workload.is_some_and(|w| self.servers.get(&w.id).is_some_and(|s| s.on == HOST));
        match (kind, is_there) {
            (TaskKind::WorkloadsMove, true) if self.open.is_empty() => (Outcome::Refused, None, finding),
            (TaskKind::WorkloadsMove, true) => (Outcome::Unknown, None, finding),
            _ => (Outcome::Confirmed, Some(kind.wanted_state()), finding),
        }
    }

    fn listed(&self) -> Vec<Workload> {
        let mine = self.servers.values().filter(|server| server.on == HOST);
        mine.map(|server| server.workload.clone()).collect()
    }

    fn became(&self, workload: Option<&Workload>) -> MoveReport {
        let server = workload.and_then(|workload| self.servers.get(&workload.id));
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
