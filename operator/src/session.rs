//! One engine's turn at the objects of one cluster.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{BoxStream, select_all};
use futures_util::{Stream, StreamExt};
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use ringfence_core::{Backend, HostId, error_chain};
use ringfence_engine::Listener;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::door::{Door, metadata};
use crate::key::Key;
use crate::queue::Queue;
use crate::{OperatorError, events, node_fence, remediation};

/// Objects that are served at a time.
const AT_ONCE: usize = 8;
/// An engine has a cluster for so long, unless it says so again.
const KEPT_FOR: chrono::TimeDelta = chrono::TimeDelta::seconds(15);
const KEEP_EVERY: Duration = Duration::from_secs(5);
/// What comes after an event is committed a moment later.
const FAR: Duration = Duration::from_secs(3600);

type Served = (Key, Result<remediation::Served, OperatorError>);

/// What is being done in a turn.
pub(crate) struct Session {
    door: Door,
    queue: Queue<Key>,
    /// The hosts of remediations.
    hosts: BTreeMap<Key, HostId>,
    served: JoinSet<Served>,
    listener: Listener,
    /// Ends with the session.
    _events: JoinSet<()>,
}

impl Door {
    /// Takes or keeps the cluster; `false` if another engine has it.
    pub async fn keep(&self) -> Result<bool, OperatorError> {
        let work = format!("operator {}", self.cluster);
        Ok(self.engine.take_work(&work, KEPT_FOR).await?)
    }
}

impl Session {
    /// Begins with every host of the cluster: what has happened to them meanwhile was not heard.
    pub async fn begin(door: Door) -> Result<Self, OperatorError> {
        let mut reader = door.engine.db().reader();
        let after = ringfence_db::last_sequence(&mut reader).await?;
        let source = Backend::Kubernetes.label(&door.cluster);
        let hosts = ringfence_db::hosts_of_cloud(&mut reader, &door.cluster, &source).await?;
        let mut queue = Queue::new();
        let now = Instant::now();
        for host in hosts {
            queue.put(Key::NodeFence(host.known_as), now);
        }
        let mut told = JoinSet::new();
        told.spawn(events::tell(door.clone(), door.engine.listen_within(after)));
        Ok(Self {
            listener: door.engine.listen_within(after),
            door,
            queue,
            hosts: BTreeMap::new(),
            served: JoinSet::new(),
            _events: told,
        })
    }

    /// Serves until it is told to stop, or another engine has the cluster.
    pub async fn run(mut self, stop: &CancellationToken) -> Result<(), OperatorError> {
        let mut changes = pin!(changes(&self.door));
        let mut keep = interval(KEEP_EVERY);
        loop {
            self.begin_due();
            let due = self.queue.next_due().filter(|_| self.served.len() < AT_ONCE);
            tokio::select! {
                () = stop.cancelled() => break,
                _ = keep.tick() => if !self.door.keep().await? { break },
                Some(key) = changes.next() => self.queue.put(key, Instant::now()),
                event = self.listener.next() => {
                    let host = event?.event.host.as_ref().map(|host| host.id);
                    if let Some(host) = host {
                        self.hear(host).await?;
                    }
                }
                Some(Ok(served)) = self.served.join_next(), if !self.served.is_empty() => self.take(served),
                () = sleep_until(due.unwrap_or_else(|| Instant::now() + FAR)) => {}
            }
        }
        while self.served.join_next().await.is_some() {}
        Ok(())
    }

    fn begin_due(&mut self) {
        while self.served.len() < AT_ONCE
            && let Some(key) = self.queue.take(Instant::now())
        {
            let door = self.door.clone();
            self.served.spawn(async move {
                let done = serve(&door, &key).await;
                (key, done)
            });
        }
    }

    fn take(&mut self, (key, done): Served) {
        let now = Instant::now();
        match done {
            Ok(served) => {
                match served.host {
                    Some(host) => self.hosts.insert(key.clone(), host),
                    None => self.hosts.remove(&key),
                };
                self.queue.done(key, served.next, now);
            }
            Err(error) if error.is_overtaken() => self.queue.done(key, Some(Duration::ZERO), now),
            Err(error) => {
                self.tell(&key, &error);
                self.queue.failed(key, now);
            }
        }
    }

    /// That the API server is away is told once, by what follows its objects.
    fn tell(&self, key: &Key, error: &OperatorError) {
        let (cluster, told) = (&self.door.cluster, error_chain(error));
        if error.is_away() || self.queue.has_failed(key) {
            tracing::debug!(cluster, object = %key, error = told, "an object could not be served; it is tried again");
        } else {
            tracing::warn!(cluster, object = %key, error = told, "an object could not be served; it is tried again");
        }
    }

    /// Something has happened to a host: its objects are looked at.
    async fn hear(&mut self, host: HostId) -> Result<(), OperatorError> {
        let now = Instant::now();
        if let Some(node) = self.door.node_of(host).await? {
            self.queue.put(Key::NodeFence(node), now);
        }
        let of_host = self.hosts.iter().filter(|(_, known)| **known == host);
        for (key, _) in of_host {
            self.queue.put(key.clone(), now);
        }
        Ok(())
    }
}

async fn serve(door: &Door, key: &Key) -> Result<remediation::Served, OperatorError> {
    match key {
        Key::NodeFence(node) => {
            let next = Box::pin(node_fence::serve(door, node)).await?;
            Ok(remediation::Served { next, host: None })
        }
        Key::Remediation(namespace, name) => Box::pin(remediation::serve(door, namespace, name)).await,
    }
}

/// The objects that change.
fn changes(door: &Door) -> impl Stream<Item = Key> + use<> {
    let fences = follow(door, node_fence::kind(), |object| {
        object.metadata.name.map(Key::NodeFence)
    });
    let remediations = follow(door, remediation::kind(), |object| {
        let meta = object.metadata;
        meta.namespace
            .zip(meta.name)
            .map(|(namespace, name)| Key::Remediation(namespace, name))
    });
    select_all([fences, remediations])
}

/// Follows one kind of objects for ever.
fn follow(
    door: &Door,
    kind: ApiResource,
    key: impl Fn(PartialObjectMeta<DynamicObject>) -> Option<Key> + Send + 'static,
) -> BoxStream<'static, Key> {
    let cluster = door.cluster.clone();
    let name = kind.plural.clone();
    let mut is_told = false;
    let stream = watcher(metadata(&door.client, &kind), watcher::Config::default()).default_backoff();
    let keys = stream.filter_map(move |event| {
        let changed = match event {
            Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => key(object),
            Ok(Event::Init) => None,
            Ok(Event::InitDone) => {
                is_told = false;
                None
            }
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    let error = error_chain(&error);
                    tracing::warn!(
                        cluster,
                        kind = name,
                        error,
                        "objects cannot be followed; their definitions are installed with: ringfence kubernetes crds | kubectl apply -f -"
                    );
                }
                None
            }
        };
        std::future::ready(changed)
    });
    keys.boxed()
}
