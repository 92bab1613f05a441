//! A cluster as a platform.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use ringfence_core::{Backend, Poll, Timestamp};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::gates::GateTurns;
use super::version::{self, Version};
use super::volume_health::Session;
use super::watching::Watching;
use super::{ClusterSettings, GateNames, faults, gates, hosts, preflight, steps};
use crate::{
    BackendError, Departure, KeptHost, Platform, Preflight, SeenGate, StepOrder, StepReport, TimeGiven,
};

/// One cluster.
pub struct Cluster {
    settings: ClusterSettings,
    client: OnceCell<Client>,
    watching: OnceCell<Watching>,
    version: OnceCell<Version>,
    evictions: OnceCell<Evictions>,
    account: OnceCell<String>,
    gate_turns: GateTurns,
    storageos: Mutex<Option<Session>>,
}

/// How pods of a cluster are evicted.
pub(super) struct Evictions {
    /// A refusal by a budget is an answer: this client does not ask again by itself.
    pub client: Client,
    /// Their group and version.
    pub version: String,
}

impl Cluster {
    /// Makes no call yet.
    #[must_use]
    pub fn new(settings: ClusterSettings) -> Self {
        Self {
            settings,
            client: OnceCell::new(),
            watching: OnceCell::new(),
            version: OnceCell::new(),
            evictions: OnceCell::new(),
            account: OnceCell::new(),
            gate_turns: GateTurns::default(),
            storageos: Mutex::new(None),
        }
    }

    /// The clusters of these settings.
    #[must_use]
    pub fn of(settings: impl IntoIterator<Item = ClusterSettings>) -> Vec<Arc<dyn Platform>> {
        let clusters = settings.into_iter().map(Self::new);
        clusters
            .map(|cluster| Arc::new(cluster) as Arc<dyn Platform>)
            .collect()
    }

    pub(super) fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    /// The login at its StorageOS.
    pub(super) fn storageos(&self) -> &Mutex<Option<Session>> {
        &self.storageos
    }

    pub(super) async fn client(&self) -> Result<&Client, BackendError> {
        self.client.get_or_try_init(|| self.settings.client()).await
    }

    /// The changes of the gate object, which is one for all nodes.
    pub(super) fn gate_turns(&self) -> &GateTurns {
        &self.gate_turns
    }

    /// The cluster's version, as it was first seen: a newer one acts on all that an older one acts on.
    pub(super) async fn version(&self) -> Result<Version, BackendError> {
        let ask = || async {
            let client = self.client().await?;
            let info = self.call(client.apiserver_version()).await?;
            Version::of(&info).ok_or_else(|| BackendError::Version {
                platform: faults::label(&self.settings.name),
                service: faults::API_SERVER,
                why: format!("its release {} is not known", info.git_version),
            })
        };
        self.version.get_or_try_init(ask).await.copied()
    }

    /// How evictions are written, as it was first seen: a release that has a newer version takes the older one too.
    pub(super) async fn evictions(&self) -> Result<&Evictions, BackendError> {
        let ask = || async {
            let client = self.settings.client_that_asks_once().await?;
            let served = self.call(client.list_core_api_resources("v1")).await?;
            let version = version::of_evictions(&served).ok_or_else(|| BackendError::Version {
                platform: faults::label(&self.settings.name),
                service: faults::API_SERVER,
                why: "it evicts no pods".to_owned(),
            })?;
            Ok(Evictions { client, version })
        };
        self.evictions.get_or_try_init(ask).await
    }

    /// The user that the cluster takes Ringfence for. Releases before 1.28 do not tell.
    pub(super) async fn account(&self) -> Result<&str, BackendError> {
        let ask = || async {
            let reviews: Api<SelfSubjectReview> = Api::all(self.client().await?.clone());
            let how = PostParams::default();
            let review = self
                .call(reviews.create(&how, &SelfSubjectReview::default()))
                .await?;
            let user = review.status.and_then(|status| status.user_info);
            user.and_then(|user| user.username)
                .ok_or_else(|| BackendError::Unreadable {
                    platform: faults::label(&self.settings.name),
                    service: faults::API_SERVER,
                    why: "its answer names no user".to_owned(),
                })
        };
        self.account.get_or_try_init(ask).await.map(String::as_str)
    }

    /// The names that the cluster's gates are written with, for this account, or for the user that the cluster takes Ringfence for.
    ///
    /// # Errors
    /// No account is given, and the cluster does not answer or does not tell.
    pub async fn gate_names(&self, account: Option<String>) -> Result<GateNames, BackendError> {
        let account = match account {
            Some(account) => account,
            None => self.account().await?.to_owned(),
        };
        Ok(self.names(&account))
    }

    /// The names that the cluster's gates are written with, for this account. No call is made.
    #[must_use]
    pub fn names(&self, account: &str) -> GateNames {
        GateNames {
            cluster: self.settings.name.clone(),
            namespace: self.settings.namespace.clone(),
            gate: self.settings.gate.clone(),
            account: account.to_owned(),
        }
    }

    /// Makes a call, within the time of one call.
    pub(super) async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, BackendError> {
        let limit = self.settings.timeout;
        let done = timeout(limit, call).await.map_err(|_| BackendError::Late {
            platform: faults::label(&self.settings.name),
            service: faults::API_SERVER,
            limit,
        })?;
        done.map_err(|error| faults::of(&self.settings.name, &error))
    }

    pub(super) async fn watching(&self) -> Result<&Watching, BackendError> {
        let client = self.client().await?;
        let start = || async { Watching::start(client, &self.settings) };
        Ok(self.watching.get_or_init(start).await)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Platform for Cluster {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn kind(&self) -> Backend {
        Backend::Kubernetes
    }

    fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    async fn look(&self) -> Result<Poll, BackendError> {
        self.watching().await?.poll()
    }

    async fn changed(&self) {
        match self.watching().await {
            Ok(watching) => watching.changed().await,
            // Every platform is also asked in intervals.
            Err(_) => std::future::pending().await,
        }
    }

    async fn keep(&self, hosts: &[KeptHost<'_>]) -> Result<(), BackendError> {
        gates::keep(self, hosts).await?;
        steps::keep(self, hosts).await?;
        hosts::keep(self, hosts).await
    }

    async fn gates(&self) -> Result<Vec<SeenGate>, BackendError> {
        gates::installed(self).await
    }

    async fn departure(&self, host: &str) -> Result<Departure, BackendError> {
        steps::departure(self, host).await
    }

    async fn preflight(&self, now: Timestamp) -> Vec<Preflight> {
        preflight::of(self, now).await
    }

    async fn preflight_fencing(&self, _: &str) -> Vec<Preflight> {
        Vec::new()
    }

    async fn carry_out(&self, order: StepOrder<'_>, budget: Duration) -> StepReport {
        steps::carry_out(self, order, TimeGiven::of(budget)).await
    }
}
