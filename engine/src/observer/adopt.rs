//! Hosts that a cloud has and we do not: added by themselves, where that is wanted.
//!
//! Nothing is ever removed here. A part of a cloud that is away is not named by it either, and with a host would go what it is fenced by.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_backends::openstack::ComputeService;
use ringfence_core::{Backend, Census, DEFAULT_ZONE, Listed, Newcomer, census};

use crate::error::error_chain;
use crate::{Context, Engine, EngineError, HostDraft};

/// Hosts that are added between two questions.
const AT_ONCE: usize = 64;

/// Adds hosts of one cloud.
pub(super) struct Adopter {
    cloud: String,
    segment: String,
    /// Why hosts could not be added, so that only a change is told.
    told: BTreeMap<String, String>,
}

impl Adopter {
    pub fn new(cloud: &str, segment: String) -> Self {
        Self {
            cloud: cloud.to_owned(),
            segment,
            told: BTreeMap::new(),
        }
    }

    /// Adds those that live and are not on record.
    pub async fn take_in(
        &mut self,
        engine: &Engine,
        services: &[ComputeService],
        known_as: &[&str],
    ) -> Result<(), EngineError> {
        let known: BTreeSet<&str> = known_as.iter().copied().collect();
        let is_new =
            |service: &&ComputeService| !known.contains(service.host.as_str()) && may_be_added(service);
        let new: Vec<&str> = services
            .iter()
            .filter(is_new)
            .map(|service| service.host.as_str())
            .collect();
        self.told.retain(|host, _| new.contains(&host.as_str()));
        if new.is_empty() {
            return Ok(());
        }
        let Census { new, barred, .. } = self.census(engine, &new).await?;
        for (host, why) in barred {
            self.tell(host, why);
        }
        for newcomer in new.into_iter().take(AT_ONCE) {
            self.add(engine, newcomer).await;
        }
        Ok(())
    }

    async fn census(&self, engine: &Engine, named: &[&str]) -> Result<Census, EngineError> {
        let hosts = ringfence_db::listed_hosts(&mut engine.0.db.reader()).await?;
        let listed: Vec<Listed<'_>> = hosts.iter().map(Listed::from).collect();
        Ok(census(&self.cloud, "", named, &listed))
    }

    async fn add(&mut self, engine: &Engine, newcomer: Newcomer) {
        let theirs = newcomer.known_as.clone().unwrap_or(newcomer.name.clone());
        let draft = HostDraft {
            name: newcomer.name,
            segment: Some(self.segment.clone()),
            backend: Backend::Nova,
            cloud: Some(self.cloud.clone()),
            known_as: newcomer.known_as,
            host_type: None,
            zone: DEFAULT_ZONE.to_owned(),
            parameters: BTreeMap::new(),
        };
        let by = Context::own(&format!("nova:{}", self.cloud));
        match engine.create_host(draft, &by).await {
            Ok(host) => {
                tracing::info!(
                    cloud = self.cloud,
                    host = host.name,
                    "a host of the cloud was added"
                );
            }
            Err(error) => self.tell(theirs, error_chain(&error)),
        }
    }

    fn tell(&mut self, host: String, why: String) {
        if self.told.get(&host) != Some(&why) {
            tracing::warn!(
                cloud = self.cloud,
                host,
                why,
                "a host of the cloud cannot be added"
            );
            self.told.insert(host, why);
        }
    }
}

/// One that is down, or was said to be, may have been left behind: it is added when it lives.
fn may_be_added(service: &ComputeService) -> bool {
    service.binary == "nova-compute" && service.is_up() && !service.forced_down
}
