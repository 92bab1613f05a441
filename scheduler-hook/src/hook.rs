//! The questions and their answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use prometheus_client::registry::Registry;
use ringfence_core::{
    ClusterUser, FailureState, Gate, Generation, HostState, NamedToGo, PodToEvict, Timestamp, gate_of_all,
    gate_of_named, movable_now, unforce_gate,
};
use ringfence_db::{Database, cloud_has_hosts, load_state_in_cloud};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::config::{HookConfig, UnknownHosts};
use crate::error::HookError;
use crate::lookup::Told;
use crate::metrics::Metrics;
use crate::snapshot::{Filtered, Snapshot};

/// The time limit of the database for one answer. Callers wait two seconds, and then ask another hook.
const ANSWER_WITHIN: Duration = Duration::from_millis(1500);

/// The time limit of a cluster that is asked for one object.
const OBJECT_WITHIN: Duration = Duration::from_secs(2);

/// The clock that engines decide by.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Answers whether workloads may land on a host and leave it. Clones share what is in memory.
#[derive(Clone)]
pub struct Hook(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub db: Database,
    pub now: Now,
    pub config: HookConfig,
    /// Readers never wait for the writer.
    pub snapshot: ArcSwapOption<Snapshot>,
    pub wake: Notify,
    metrics: Metrics,
}

/// What is to leave a node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving<'a> {
    /// The UID of the pod or attachment.
    pub uid: &'a str,
    /// The persistent volume of an attachment.
    pub volume: Option<&'a str>,
    /// Whether the cluster's own controller asks, which detaches a volume when the kubelet has let go of it, or has been silent for long.
    pub is_detached_by_cluster: bool,
}

/// The answer about one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Yes or no.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// The host's generation; `None` where the host is not known.
    pub generation: Option<Generation>,
}

impl Verdict {
    fn new(gate: Gate, state: &HostState) -> Self {
        Self {
            allowed: gate.allowed,
            reason: gate.reason,
            generation: Some(state.host.generation),
        }
    }

    /// A no about a host that Ringfence does not know.
    fn unknown(reason: String) -> Self {
        Self {
            allowed: false,
            reason,
            generation: None,
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

impl Hook {
    /// A hook without a read: [`Hook::keep`] reads the hosts, and goes on reading them.
    #[must_use]
    pub fn new(db: Database, now: Now, config: HookConfig) -> Self {
        Self(Arc::new(Shared {
            db,
            now,
            config,
            snapshot: ArcSwapOption::empty(),
            wake: Notify::new(),
            metrics: Metrics::default(),
        }))
    }

    /// Adds the hook's metrics to those of the process.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.0.metrics.register(&self.0, registry);
    }

    /// Makes the hook read the hosts anew, soon after a change.
    pub fn nudge(&self) {
        self.0.wake.notify_one();
    }

    /// Whether schedule gates can be answered now.
    ///
    /// # Errors
    /// The last read is too old.
    pub fn health(&self) -> Result<(), HookError> {
        self.fresh().map(|_| ())
    }

    /// The hosts as they were last read. The caller that has made an answer calls [`Hook::require_fresh`] before sending it.
    ///
    /// # Errors
    /// The last read is too old.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, HookError> {
        self.fresh()
            .inspect_err(|_| self.0.metrics.count("schedule", "unavailable", 1))
    }

    fn fresh(&self) -> Result<Arc<Snapshot>, HookError> {
        let max_age = self.0.config.max_age;
        let snapshot = self.0.snapshot.load_full();
        let snapshot = snapshot.ok_or(HookError::Stale { age: None, max_age })?;
        self.require_fresh(&snapshot)?;
        Ok(snapshot)
    }

    /// Whether a snapshot is fresh enough for an answer.
    ///
    /// # Errors
    /// The snapshot is too old.
    pub fn require_fresh(&self, snapshot: &Snapshot) -> Result<(), HookError> {
        let (age, max_age) = (snapshot.age(), self.0.config.max_age);
        if age.is_some_and(|age| age <= max_age) {
            return Ok(());
        }
        Err(HookError::Stale { age, max_age })
    }

    /// Confirms an answer about hosts in memory, if it opens something. The snapshot was read before.
    ///
    /// # Errors
    /// Another process may lead.
    pub async fn confirm(&self, filtered: &Filtered<'_>) -> Result<(), HookError> {
        if filtered.allowed.is_empty() {
            return Ok(());
        }
        let confirmed = timeout(ANSWER_WITHIN, self.confirmation()).await;
        let confirmed = confirmed.unwrap_or_else(|_| Err(late()));
        confirmed.inspect_err(|_| self.0.metrics.count("schedule", "unavailable", 1))
    }

    async fn confirmation(&self) -> Result<(), HookError> {
        self.0.config.confirmation.get().await.map_err(HookError::Lead)
    }

    /// The clusters of the configuration.
    #[must_use]
    pub fn clusters(&self) -> &[String] {
        &self.0.config.clusters
    }

    /// The hosts among these that may get workloads.
    pub fn filter<'a>(
        &self,
        snapshot: &'a Snapshot,
        cloud: &str,
        hosts: impl Iterator<Item = &'a str>,
    ) -> Filtered<'a> {
        let filtered = snapshot.filter(cloud, hosts, self.0.config.unknown_hosts);
        let metrics = &self.0.metrics;
        metrics.count("schedule", "allowed", filtered.allowed.len());
        metrics.count("schedule", "refused", filtered.refused.len());
        filtered
    }

    /// May this host's workloads be started elsewhere? Read from the database, never from memory.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn may_evacuate(&self, cloud: &str, host: &str) -> Result<Verdict, HookError> {
        let verdict = async {
            Ok(match self.load(cloud, host).await? {
                Some(state) => Verdict::new(gate_of_all(&state, (self.0.now)()), &state),
                None => Verdict::unknown(format!(
                    "Ringfence knows no host {host:?} in cloud {cloud:?}; add it and have it fenced"
                )),
            })
        };
        self.counted("evacuate", verdict).await
    }

    /// May this leave a node? It may where all of the node's workloads may be started elsewhere, or where the cluster's gate object names it.
    /// Read from the database and from the cluster, never from memory.
    ///
    /// # Errors
    /// The database does not answer, or the cluster where it has to be asked.
    pub async fn may_leave(
        &self,
        cluster: &str,
        node: &str,
        leaving: Leaving<'_>,
    ) -> Result<Verdict, HookError> {
        let question = match leaving.is_detached_by_cluster {
            true => "detach",
            false => "evacuate",
        };
        let named = self.named(cluster, node, leaving).await;
        let named = named.inspect_err(|_| self.0.metrics.count(question, "unavailable", 1))?;
        self.counted(question, self.judged(cluster, node, leaving, named))
            .await
    }

    async fn may_only_some_go(&self, cluster: &str, node: &str) -> Result<bool, HookError> {
        let state = in_time(self.load(cluster, node)).await?;
        let now = (self.0.now)();
        let is_so =
            |state: HostState| movable_now(&state, now).is_some() && !gate_of_all(&state, now).allowed;
        Ok(state.is_some_and(is_so))
    }

    /// What the cluster names, where not all may leave the node. The host is read after it: the list may be a moment old.
    async fn named(
        &self,
        cluster: &str,
        node: &str,
        leaving: Leaving<'_>,
    ) -> Result<Option<Named>, HookError> {
        if !self.may_only_some_go(cluster, node).await? {
            return Ok(None);
        }
        let clusters = self.0.config.lookup.clusters();
        let asked = async {
            let list = clusters.named_to_go(cluster, node).await?;
            let volume = leaving.volume.filter(|_| leaving.is_detached_by_cluster);
            let volume = match volume {
                Some(volume) => clusters.volume(cluster, volume).await?,
                None => None,
            };
            Ok(Named { list, volume })
        };
        let named = asked_in_time(cluster, asked).await;
        named.map(Some).map_err(HookError::Unnamed)
    }

    async fn judged(
        &self,
        cluster: &str,
        node: &str,
        leaving: Leaving<'_>,
        named: Option<Named>,
    ) -> Result<Verdict, HookError> {
        let Some(state) = self.load(cluster, node).await? else {
            return Ok(Verdict::unknown(format!(
                "Ringfence knows no host {node:?} in cluster {cluster:?}; add it and have it fenced"
            )));
        };
        let now = (self.0.now)();
        let gate = match &named {
            Some(named) => {
                let names = [Some(leaving.uid), named.volume.as_deref()];
                let names: Vec<&str> = names.into_iter().flatten().collect();
                gate_of_named(&state, named.list.as_ref(), &names, now)
            }
            None => gate_of_all(&state, now),
        };
        let mut verdict = Verdict::new(gate, &state);
        if leaving.is_detached_by_cluster && state.host.failure_state == FailureState::Up {
            verdict.allowed = true;
            verdict.reason = "the host is UP".to_owned();
        }
        Ok(verdict)
    }

    /// The pod of this name, of this cluster.
    ///
    /// # Errors
    /// Why the cluster does not tell.
    pub async fn pod_to_evict(&self, cluster: &str, namespace: &str, name: &str) -> Told<Option<PodToEvict>> {
        let clusters = self.0.config.lookup.clusters();
        asked_in_time(cluster, clusters.pod(cluster, namespace, name)).await
    }

    /// May this user of a cluster confirm the fence of a node? The cluster says so.
    ///
    /// # Errors
    /// Why the cluster does not tell.
    pub async fn may_confirm(&self, cluster: &str, user: &ClusterUser, node: &str) -> Told<bool> {
        let clusters = self.0.config.lookup.clusters();
        asked_in_time(cluster, clusters.may_confirm(cluster, user, node)).await
    }

    /// May forced-down be withdrawn for this host? Read from the database, never from memory.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn may_unforce(&self, cloud: &str, host: &str) -> Result<Verdict, HookError> {
        let verdict = async {
            match self.load(cloud, host).await? {
                Some(state) => Ok(Verdict::new(unforce_gate(&state, (self.0.now)()), &state)),
                None => self.unforce_unknown(cloud, host).await,
            }
        };
        self.counted("unforce", verdict).await
    }

    async fn load(&self, cloud: &str, host: &str) -> Result<Option<HostState>, HookError> {
        Ok(load_state_in_cloud(&mut self.0.db.reader_by_keys(), cloud, host).await?)
    }

    /// An unknown host may be un-forced if the settings allow unknown hosts; but a wrong name of a cloud must not open a host that is
    /// FENCED.
    async fn unforce_unknown(&self, cloud: &str, host: &str) -> Result<Verdict, HookError> {
        let config = &self.0.config;
        let is_foreign = config.unknown_hosts == UnknownHosts::Allowed
            && (config.platforms().any(|known| known == cloud)
                || cloud_has_hosts(&mut self.0.db.reader_by_keys(), cloud).await?);
        let mut verdict = Verdict::unknown(format!("Ringfence knows no host {host:?} in cloud {cloud:?}"));
        if is_foreign {
            verdict.allowed = true;
            verdict.reason += ", and unknown hosts are allowed";
        }
        Ok(verdict)
    }

    async fn counted(
        &self,
        question: &'static str,
        verdict: impl Future<Output = Result<Verdict, HookError>>,
    ) -> Result<Verdict, HookError> {
        let confirmed = async {
            let verdict = verdict.await?;
            if verdict.allowed {
                self.confirmation().await?;
            }
            Ok(verdict)
        };
        let verdict = in_time(Box::pin(confirmed)).await;
        let outcome = match &verdict {
            Ok(verdict) if verdict.allowed => "allowed",
            Ok(_) => "refused",
            Err(_) => "unavailable",
        };
        self.0.metrics.count(question, outcome, 1);
        verdict
    }
}

/// What a cluster names as free to leave a node.
struct Named {
    list: Option<NamedToGo>,
    /// The volume that is asked about, in the words of the list.
    volume: Option<String>,
}

async fn in_time<T>(answer: impl Future<Output = Result<T, HookError>>) -> Result<T, HookError> {
    let answer = timeout(ANSWER_WITHIN, answer).await;
    answer.unwrap_or(Err(HookError::Slow {
        within: ANSWER_WITHIN,
    }))
}

async fn asked_in_time<T>(cluster: &str, answer: impl Future<Output = Told<T>>) -> Told<T> {
    let answer = timeout(OBJECT_WITHIN, answer).await;
    answer.unwrap_or_else(|_| {
        let within = OBJECT_WITHIN.as_millis();
        Err(format!("cluster {cluster} did not answer within {within} ms"))
    })
}

fn late() -> HookError {
    HookError::Lead(format!("no answer within {} ms", ANSWER_WITHIN.as_millis()))
}
