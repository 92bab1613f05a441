//! Hosts that a platform has and Ringfence does not: added by themselves, where that is wanted.
//!
//! Nothing is ever removed here. A part of a platform that is away is not named by it either, and with a host would go what it is fenced by.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_backends::Platform;
use ringfence_core::{Backend, Census, DEFAULT_ZONE, Listed, Newcomer, Sign, census, error_chain};

use crate::{Context, Engine, EngineError, HostDraft};

/// Hosts that are added between two questions.
const AT_ONCE: usize = 64;

/// Adds hosts of one platform.
pub(super) struct Adopter {
    backend: Backend,
    platform: String,
    segment: String,
    /// Why hosts could not be added, so that only a change is told.
    told: BTreeMap<String, String>,
}

impl Adopter {
    pub fn new(platform: &dyn Platform, segment: String) -> Self {
        Self {
            backend: platform.kind(),
            platform: platform.name().to_owned(),
            segment,
            told: BTreeMap::new(),
        }
    }

    /// Adds those that live and are not on record.
    pub async fn take_in(
        &mut self,
        engine: &Engine,
        signs: &[Sign],
        known_as: &[&str],
    ) -> Result<(), EngineError> {
        let known: BTreeSet<&str> = known_as.iter().copied().collect();
        let is_new = |sign: &&Sign| !known.contains(sign.host.as_str()) && may_be_added(sign);
        let new = signs.iter().filter(is_new).map(|sign| sign.host.as_str());
        let new: Vec<&str> = new.collect();
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
        Ok(census((self.backend, &self.platform), "", named, &listed))
    }

    async fn add(&mut self, engine: &Engine, newcomer: Newcomer) {
        let theirs = newcomer.known_as.clone().unwrap_or(newcomer.name.clone());
        let draft = HostDraft {
            name: newcomer.name,
            segment: Some(self.segment.clone()),
            backend: self.backend,
            cloud: Some(self.platform.clone()),
            known_as: newcomer.known_as,
            host_type: None,
            zone: DEFAULT_ZONE.to_owned(),
            parameters: BTreeMap::new(),
        };
        let by = Context::own(&self.backend.label(&self.platform));
        match engine.create_host(draft, &by).await {
            Ok(host) => {
                tracing::info!(
                    platform = self.platform,
                    host = host.name,
                    "a host of the platform was added"
                );
            }
            Err(error) => self.tell(theirs, error_chain(&error)),
        }
    }

    fn tell(&mut self, host: String, why: String) {
        if self.told.get(&host) != Some(&why) {
            tracing::warn!(
                platform = self.platform,
                host,
                why,
                "a host of the platform cannot be added"
            );
            self.told.insert(host, why);
        }
    }
}

/// One that is down, or was said to be, may have been left behind: it is added when it lives.
fn may_be_added(sign: &Sign) -> bool {
    sign.is_up && !sign.is_marked_down
}
