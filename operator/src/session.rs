//! One engine's turn at the objects of one cluster.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, select_all};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use ringfence_core::{Backend, EventKind, HostId, error_chain};
use ringfence_engine::Listener;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::door::{Door, metadata};
use crate::key::Key;
use crate::queue::Queue;
use crate::{OperatorError, events, fence_config, node_fence, remediation};

/// Objects that are served at a time.
const AT_ONCE: usize = 8;
/// An engine has a cluster for so long, unless it says so again.
const KEPT_FOR: chrono::TimeDelta = chrono::TimeDelta::seconds(15);
const KEEP_EVERY: Duration = Duration::from_secs(5);
/// What comes after an event is committed a moment later.
const FAR: Duration = Duration::from_secs(3600);
/// The last events of the engine that are told to the cluster at the beginning, unless it has them: an operator that has died may not have.
const RETOLD: u64 = 1000;
/// What may help where objects of Kubernetes itself cannot be followed.
const RIGHTS: &str = "the ClusterRole ringfence-operator has the rights";
/// Objects of the configuration that change together are read together.
const GATHER: Duration = Duration::from_millis(300);

type Served = (Key, Result<remediation::Served, OperatorError>);

/// What is being done in a turn.
pub(crate) struct Session {
    door: Door,
    queue: Queue<Key>,
    /// The hosts of remediations.
    hosts: BTreeMap<Key, HostId>,
    /// What is known of the configuration. One task at a time serves it.
    config: Arc<Mutex<fence_config::Known>>,
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
        queue.put(Key::FenceConfig, now);
        let mut told = JoinSet::new();
        let retold = after.saturating_sub(RETOLD);
        told.spawn(events::tell(door.clone(), door.engine.listen_within(retold)));
        Ok(Self {
            listener: door.engine.listen_within(after),
            door,
            queue,
            hosts: BTreeMap::new(),
            config: Arc::default(),
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
                Some(key) = changes.next() => self.queue.put(key.clone(), Instant::now() + pause(&key)),
                event = self.listener.next() => {
                    let event = &event?.event;
                    if event.kind == EventKind::HostCreated {
                        self.queue.put(Key::FenceConfig, Instant::now());
                    }
                    if let Some(host) = event.host.as_ref().map(|host| host.id) {
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
            let (door, config) = (self.door.clone(), Arc::clone(&self.config));
            self.served.spawn(async move {
                let done = serve(&door, &key, &config).await;
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

fn pause(key: &Key) -> Duration {
    match key {
        Key::FenceConfig => GATHER,
        Key::NodeFence(_) | Key::Remediation(..) => Duration::ZERO,
    }
}

async fn serve(
    door: &Door,
    key: &Key,
    config: &Mutex<fence_config::Known>,
) -> Result<remediation::Served, OperatorError> {
    match key {
        Key::FenceConfig => {
            let mut known = config.lock().await;
            let next = Box::pin(fence_config::serve(door, &mut known)).await?;
            Ok(remediation::Served { next, host: None })
        }
        Key::NodeFence(node) => {
            let next = Box::pin(node_fence::serve(door, node)).await?;
            Ok(remediation::Served { next, host: None })
        }
        Key::Remediation(namespace, name) => Box::pin(remediation::serve(door, namespace, name)).await,
    }
}

/// The objects that change.
fn changes(door: &Door) -> impl Stream<Item = Key> + use<> {
    let fences = follow(door, &node_fence::kind(), |object| {
        object.metadata.name.map(Key::NodeFence)
    });
    let remediations = follow(door, &remediation::kind(), |object| {
        let meta = object.metadata;
        meta.namespace
            .zip(meta.name)
            .map(|(namespace, name)| Key::Remediation(namespace, name))
    });
    select_all([fences, remediations, config_maps(door), nodes(door)])
}

/// Follows one kind of Ringfence's own objects for ever.
fn follow(
    door: &Door,
    kind: &ApiResource,
    key: impl Fn(PartialObjectMeta<DynamicObject>) -> Option<Key> + Send + 'static,
) -> BoxStream<'static, Key> {
    let remedy = "their definitions are installed with: ringfence kubernetes crds | kubectl apply -f -";
    watch(
        door,
        metadata(&door.client, kind),
        (kind.plural.clone(), remedy),
        move |event| match event {
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => key(object),
            Event::Init | Event::InitDone => None,
        },
    )
}

/// Follows the ConfigMaps of the configuration, by their names alone.
fn config_maps(door: &Door) -> BoxStream<'static, Key> {
    let kind = ApiResource::erase::<ConfigMap>(&());
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::namespaced_with(door.client.clone(), &door.namespace, &kind);
    watch(door, api, ("configmaps".to_owned(), RIGHTS), |event| {
        let (Event::Apply(map) | Event::InitApply(map) | Event::Delete(map)) = event else {
            return None;
        };
        fence_config::is_own(&map.name_any()).then_some(Key::FenceConfig)
    })
}

/// Follows what nodes say of themselves, which changes seldom, while a node changes often.
fn nodes(door: &Door) -> BoxStream<'static, Key> {
    let api: Api<fence_config::NodeObject> = Api::all_with(door.client.clone(), &fence_config::nodes());
    let mut known = BTreeMap::new();
    watch(door, api, ("nodes".to_owned(), RIGHTS), move |event| {
        let is_changed = match event {
            Event::Apply(node) | Event::InitApply(node) => {
                let node = fence_config::seen(node);
                known.insert(node.name.clone(), node.clone()) != Some(node)
            }
            Event::Delete(node) => known.remove(&node.name_any()).is_some(),
            Event::Init | Event::InitDone => false,
        };
        is_changed.then_some(Key::FenceConfig)
    })
}

/// Follows objects for ever. That they cannot be followed is told once, with what may help.
fn watch<K>(
    door: &Door,
    api: Api<K>,
    (kind, remedy): (String, &'static str),
    mut key: impl FnMut(Event<K>) -> Option<Key> + Send + 'static,
) -> BoxStream<'static, Key>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let cluster = door.cluster.clone();
    let mut is_told = false;
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    let keys = stream.filter_map(move |event| {
        let changed = match event {
            Ok(event) => {
                is_told = is_told && !matches!(event, Event::InitDone);
                key(event)
            }
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    let error = error_chain(&error);
                    tracing::warn!(cluster, kind, error, "objects cannot be followed; {remedy}");
                }
                None
            }
        };
        std::future::ready(changed)
    });
    keys.boxed()
}
