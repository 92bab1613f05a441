//! Following a cluster's nodes and leases.
//!
//! All leases come in one stream: a stream that has stopped shows no change of Ringfence's own lease either, so that a node is never taken for
//! silent because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use ringfence_core::{Labels, MAX_LABELS, Poll, is_of_backend, validate_name};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::beat::Beat;
use super::faults;
use super::gates::SeenGate;
use super::objects::{LeaseObject, NodeObject, boot, conditions, leases, nodes, ready};
use super::settings::ClusterSettings;
use super::sightings::{SeenMarks, Sightings};
use super::steps;
use crate::BackendError;

const NODE_LEASES: &str = "kube-node-lease";
/// Between two tries at a stream that has broken.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A cluster sends the stream of its nodes something once a minute at least.
const NODES_QUIET_FOR: Duration = Duration::from_secs(150);
/// The gate object is read anew after such a time without a change.
const GATE_QUIET_FOR: Duration = Duration::from_secs(60);
/// The shortest time after which a stream of leases counts as broken.
const LEASES_QUIET_FOR: Duration = Duration::from_secs(10);
/// What comes within such a time is looked at once.
const GATHER: Duration = Duration::from_millis(50);
/// The label with a node's type.
const TYPE: &str = "type";

#[derive(Clone, Copy)]
enum Kind {
    Nodes = 0,
    Leases = 1,
}

/// What all tasks share.
#[derive(Debug)]
struct Shared {
    sightings: Mutex<Sightings>,
    /// Why a stream does not tell anything, by its kind. Both begin so.
    broken: Mutex<[Option<String>; 2]>,
    news: Notify,
    /// The gate object; `None` while it is not known.
    gate: Mutex<Option<SeenGate>>,
    /// What the last look has seen.
    looked: Mutex<Looked>,
}

/// What is compared with what holds for the hosts, and changed only if it is still as the last look saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked {
    pub marks: BTreeMap<String, SeenMarks>,
    /// The gate object; `None` if it is not known.
    pub gate: Option<SeenGate>,
}

/// The streams of one cluster, until it is dropped.
#[derive(Debug)]
pub(super) struct Watching {
    shared: Arc<Shared>,
    cluster: String,
    _tasks: JoinSet<()>,
}

impl Watching {
    pub fn start(client: &Client, settings: &ClusterSettings) -> Self {
        let not_yet = || Some("it has not listed its objects yet".to_owned());
        let shared = Arc::new(Shared {
            sightings: Mutex::new(Sightings::new(settings.down_after, Instant::now())),
            broken: Mutex::new([not_yet(), not_yet()]),
            news: Notify::new(),
            gate: Mutex::default(),
            looked: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_nodes(client.clone(), Arc::clone(&shared)));
        tasks.spawn(follow_leases(
            client.clone(),
            Arc::clone(&shared),
            settings.down_after,
        ));
        tasks.spawn(follow_gate(client.clone(), Arc::clone(&shared), settings.clone()));
        let beat = Beat::new(client.clone(), &settings.namespace);
        tasks.spawn(write_beats(beat, Arc::clone(&shared), settings.clone()));
        Self {
            shared,
            cluster: settings.name.clone(),
            _tasks: tasks,
        }
    }

    /// What was seen so far.
    ///
    /// # Errors
    /// A stream is broken.
    pub fn poll(&self) -> Result<Poll, BackendError> {
        let why = self.shared.broken.lock().iter().flatten().next().cloned();
        match why {
            None => {
                let sightings = self.shared.sightings.lock();
                *self.shared.looked.lock() = Looked {
                    marks: sightings.marks().clone(),
                    gate: self.shared.gate.lock().clone(),
                };
                Ok(sightings.poll())
            }
            Some(why) => Err(BackendError::Away {
                platform: faults::label(&self.cluster),
                service: faults::API_SERVER,
                why,
            }),
        }
    }

    /// What the last [`Self::poll`] has seen.
    pub fn looked(&self) -> Looked {
        self.shared.looked.lock().clone()
    }

    /// Waits until there is something to see.
    pub async fn changed(&self) {
        self.shared.news.notified().await;
        sleep(GATHER).await;
    }
}

impl Shared {
    fn tell(&self, kind: Kind, why: Option<String>) {
        let known = std::mem::replace(&mut self.broken.lock()[kind as usize], why.clone());
        if known.is_some() != why.is_some() {
            self.news.notify_one();
        }
    }

    fn see_gate(&self, seen: Option<SeenGate>) {
        let known = std::mem::replace(&mut *self.gate.lock(), seen.clone());
        if known != seen {
            self.news.notify_one();
        }
    }

    /// Changes what was seen, and says so where it is worth a look.
    fn see(&self, change: impl FnOnce(&mut Sightings) -> bool) {
        if change(&mut self.sightings.lock()) {
            self.news.notify_one();
        }
    }
}

/// Follows one kind of objects for ever. A stream that is quiet for long is opened anew.
async fn follow<K, S>(
    shared: &Shared,
    kind: Kind,
    quiet_for: Duration,
    open: impl Fn() -> S,
    mut take: impl FnMut(Event<K>),
) where
    S: Stream<Item = Result<Event<K>, watcher::Error>>,
{
    loop {
        let mut stream = pin!(open());
        let why = loop {
            match timeout(quiet_for, stream.next()).await {
                Ok(Some(Ok(event))) => {
                    let is_listed = !matches!(event, Event::Init | Event::InitApply(_));
                    take(event);
                    if is_listed {
                        shared.tell(kind, None);
                    }
                }
                Ok(Some(Err(error))) => {
                    shared.tell(kind, Some(faults::chain(&error)));
                    sleep(TRY_AGAIN_AFTER).await;
                }
                Ok(None) => break "the stream has ended".to_owned(),
                Err(_) => break format!("nothing has come for {} s", quiet_for.as_secs()),
            }
        };
        shared.tell(kind, Some(why));
        sleep(TRY_AGAIN_AFTER).await;
    }
}

async fn follow_nodes(client: Client, shared: Arc<Shared>) {
    let api: Api<NodeObject> = Api::all_with(client, &nodes());
    let open = || watcher(api.clone(), watcher::Config::default());
    let mut listed = BTreeSet::new();
    let take = |event| match event {
        Event::Apply(node) => see_node(&shared, &node),
        Event::Delete(node) => shared.see(|seen| {
            seen.no_node(&node.name_any());
            true
        }),
        Event::Init => listed.clear(),
        Event::InitApply(node) => {
            see_node(&shared, &node);
            listed.insert(node.name_any());
        }
        Event::InitDone => shared.see(|seen| {
            seen.only_nodes(|name| listed.contains(name));
            true
        }),
    };
    follow(&shared, Kind::Nodes, NODES_QUIET_FOR, open, take).await;
}

fn see_node(shared: &Shared, node: &NodeObject) {
    let (name, state) = (node.name_any(), ready(node));
    let (marks, boot, conditions) = (steps::marks(node), boot(node), conditions(node));
    let host_type = node.labels().get(TYPE).cloned();
    let host_type = host_type.filter(|word| validate_name("type", word).is_ok());
    let labels = node.labels().iter().filter(|(name, _)| is_of_backend(name));
    let labels: Labels = labels
        .take(MAX_LABELS)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    shared.see(|seen| {
        seen.node_type(&name, host_type);
        let is_moved = seen.node_labels(&name, labels);
        let is_changed = seen.node(&name, state);
        let is_booted = seen.node_boot(&name, boot);
        let has_others = seen.node_conditions(&name, conditions);
        seen.node_marks(&name, marks) || is_changed || is_booted || has_others || is_moved
    });
}

/// Follows the gate object. A cluster that does not show it is watched without it.
async fn follow_gate(client: Client, shared: Arc<Shared>, settings: ClusterSettings) {
    let api: Api<ConfigMap> = Api::namespaced(client, &settings.namespace);
    let config = watcher::Config::default().fields(&format!("metadata.name={}", settings.gate));
    let mut has_told = false;
    loop {
        let mut stream = pin!(watcher(api.clone(), config.clone()));
        let mut listed = SeenGate::default();
        // One that has not changed for long is read anew: the stream may have broken unseen.
        while let Ok(Some(event)) = timeout(GATE_QUIET_FOR, stream.next()).await {
            let seen = match event {
                Ok(Event::Init) => continue,
                Ok(Event::InitApply(gate)) => {
                    listed = SeenGate::of(&gate);
                    continue;
                }
                Ok(Event::InitDone) => Some(std::mem::take(&mut listed)),
                Ok(Event::Apply(gate)) => Some(SeenGate::of(&gate)),
                Ok(Event::Delete(_)) => Some(SeenGate::default()),
                Err(error) => {
                    if !has_told {
                        let (cluster, error) = (&settings.name, faults::chain(&error));
                        tracing::warn!(
                            cluster,
                            error,
                            "the gate object cannot be watched, and is not kept up"
                        );
                    }
                    None
                }
            };
            has_told = seen.is_none();
            shared.see_gate(seen);
            if has_told {
                sleep(TRY_AGAIN_AFTER).await;
            }
        }
    }
}

async fn follow_leases(client: Client, shared: Arc<Shared>, down_after: Duration) {
    let api: Api<LeaseObject> = Api::all_with(client, &leases());
    let open = || watcher(api.clone(), watcher::Config::default());
    let take = |event| match event {
        Event::Apply(lease) | Event::InitApply(lease) => see_lease(&shared, lease),
        Event::Delete(lease) => shared.see(|seen| {
            seen.no_other_lease(&full_name(&lease));
            false
        }),
        Event::Init | Event::InitDone => {}
    };
    let quiet_for = down_after.max(LEASES_QUIET_FOR);
    follow(&shared, Kind::Leases, quiet_for, open, take).await;
}

fn see_lease(shared: &Shared, lease: LeaseObject) {
    let now = Instant::now();
    if lease.namespace().as_deref() == Some(NODE_LEASES) {
        let node = lease.name_any();
        shared.see(|seen| seen.node_lease(&node, lease.spec.renew_time, now));
    } else {
        let name = full_name(&lease);
        shared.see(|seen| seen.other_lease(&name, lease.resource_version(), now));
    }
}

fn full_name(lease: &LeaseObject) -> String {
    format!("{}/{}", lease.namespace().unwrap_or_default(), lease.name_any())
}

/// Writes Ringfence's own lease, in time and just after a node has been silent for long enough: what shows then that the cluster is well
/// need not be waited for.
async fn write_beats(mut beat: Beat, shared: Arc<Shared>, settings: ClusterSettings) {
    let every = settings.down_after / 5;
    let mut has_told = false;
    loop {
        let written = timeout(settings.timeout, beat.write()).await;
        if let Ok(Err(error)) = &written
            && !has_told
        {
            let cluster = &settings.name;
            tracing::warn!(
                cluster,
                error = faults::chain(error),
                "Ringfence's own lease cannot be written; a silent node is noticed later"
            );
        }
        has_told = !matches!(written, Ok(Ok(())));
        let now = Instant::now();
        let due = shared.sightings.lock().next_due(now);
        sleep_until((now + every).min(due.unwrap_or(now + every))).await;
    }
}
