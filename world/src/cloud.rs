//! The backend of the host's workloads, as it really is. Knows nothing of `decide`, so that it can show it wrong.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{
    Backend, Finding, Movable, MoveReport, ObservedState, Outcome, Workload, WorkloadState, WorkloadStep,
};

/// The host that all stories are about, as its backend calls it.
pub const HOST: &str = "compute1";

/// What a workload would spoil if it ran twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uses {
    /// What the plan takes as its administrator means it: it suffices for all workloads.
    WhatSuffices,
    /// Volumes of the storage that is fenced, all of them.
    FencedStorage,
    /// A volume of another storage.
    OtherStorage,
    /// Its address: it has no volume.
    Network,
}

impl Uses {
    /// What the pods of a cluster use.
    pub const OF_PODS: [Self; 3] = [Self::FencedStorage, Self::OtherStorage, Self::Network];

    /// Whether a worker may let it go that was told so.
    fn leaves(self, movable: Movable) -> bool {
        match (self, movable) {
            (Self::WhatSuffices, _) | (_, Movable::All) => true,
            (uses, Movable::OnFencedStorage) => uses == Self::FencedStorage,
            (uses, Movable::WithoutVolumes) => uses == Self::Network,
        }
    }
}

/// One workload in the backend.
#[derive(Clone, Debug)]
pub struct Server {
    pub workload: Workload,
    pub on: String,
    pub uses: Uses,
    /// How often a move of it still fails.
    pub fails: u32,
}

/// A move that the backend has carried out.
#[derive(Clone, Debug)]
pub struct Start {
    pub id: String,
    /// Whether it could spoil nothing from the host at that moment.
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
    /// Its workloads are pods: of one host they use this and that.
    pub is_cluster: bool,
    /// Everything that was started elsewhere, in order.
    pub started: Vec<Start>,
    /// It was told that nothing runs on the host any more while something of it could: volumes are detached then, and others start what ran there.
    pub was_misled: bool,
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

    /// What this backend has of so many workloads on the host.
    pub fn of(backend: Backend, count: usize) -> Self {
        match backend {
            Backend::Kubernetes => Self::cluster(count),
            Backend::Nova | Backend::None => Self::with(count),
        }
    }

    /// A cluster with so many pods on the host, each of another sort than the one before, and one more host with room.
    pub fn cluster(count: usize) -> Self {
        let mut cloud = Self::with(count);
        let sorts = Uses::OF_PODS.into_iter().cycle().skip(count);
        for (server, uses) in cloud.servers.values_mut().zip(sorts) {
            server.uses = uses;
        }
        cloud.is_cluster = true;
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
            owner: None,
            state: WorkloadState::Running,
            metadata,
        };
        let server = Server {
            workload,
            on: HOST.to_owned(),
            uses: Uses::WhatSuffices,
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

    /// A worker acts, as far as it was told that it may. It looks first, as every driver does.
    pub fn command(&mut self, step: &WorkloadStep, movable: Movable, is_safe: impl Fn(Uses) -> bool) {
        if self.is_away {
            return;
        }
        match step {
            // A cluster is told of a node as a whole or not at all.
            WorkloadStep::MarkDown { .. } if self.is_cluster && movable != Movable::All => {}
            WorkloadStep::MarkDown { .. } => {
                self.forced_down = true;
                self.let_go(movable, is_safe);
            }
            WorkloadStep::Empty => self.let_go(movable, is_safe),
            WorkloadStep::MarkUp => self.forced_down = false,
            WorkloadStep::AddCapacity { host } => {
                self.open.insert(host.clone());
            }
            WorkloadStep::Move(step) if step.only_look => {}
            WorkloadStep::Move(step) => self.start_elsewhere(&step.workload.id, movable, is_safe),
            WorkloadStep::Isolate { .. }
            | WorkloadStep::List { .. }
            | WorkloadStep::CleanUp
            | WorkloadStep::Start { .. } => {}
        }
    }

    /// Volumes are detached from the host, also those of a workload that nothing knows of any more.
    fn let_go(&mut self, movable: Movable, is_safe: impl Fn(Uses) -> bool) {
        let of_cloud = [Uses::WhatSuffices];
        let sorts: &[Uses] = if self.is_cluster {
            &Uses::OF_PODS
        } else {
            &of_cloud
        };
        let mut gone = sorts.iter().filter(|uses| uses.leaves(movable));
        self.was_misled |= gone.any(|uses| !is_safe(*uses));
    }

    fn start_elsewhere(&mut self, id: &str, movable: Movable, is_safe: impl Fn(Uses) -> bool) {
        let to = self.open.first().cloned();
        let (Some(server), Some(to)) = (self.servers.get_mut(id), to) else {
            return;
        };
        if server.on != HOST || !server.uses.leaves(movable) {
            return;
        }
        if server.fails > 0 {
            server.fails -= 1;
            return;
        }
        server.on = to;
        self.started.push(Start {
            id: id.to_owned(),
            was_safe: is_safe(server.uses),
        });
    }

    /// What a worker reports after it has acted.
    pub fn report(
        &self,
        step: &WorkloadStep,
        movable: Movable,
    ) -> (Outcome, Option<ObservedState>, Option<Finding>) {
        if self.is_away {
            return (Outcome::Unknown, None, Some(Finding::Away));
        }
        let done = |finding| (Outcome::Confirmed, Some(ObservedState::Done), finding);
        match step {
            WorkloadStep::List { .. } | WorkloadStep::Empty => {
                done(Some(Finding::Workloads(self.listed(movable))))
            }
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
            WorkloadStep::Isolate { .. }
            | WorkloadStep::MarkDown { .. }
            | WorkloadStep::MarkUp
            | WorkloadStep::AddCapacity { .. }
            | WorkloadStep::CleanUp
            | WorkloadStep::Start { .. } => done(None),
        }
    }

    fn listed(&self, movable: Movable) -> Vec<Workload> {
        let mine = self
            .servers
            .values()
            .filter(|server| server.on == HOST && server.uses.leaves(movable));
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
