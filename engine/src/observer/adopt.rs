//! Hosts that a platform has and Ringfence does not: added by themselves, where that is wanted.
//!
//! Nothing is removed here. A part of a platform that is away is not named by it either.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_backends::Platform;
use ringfence_core::{Backend, Census, DEFAULT_ZONE, Listed, Newcomer, Sign, census, error_chain};

use super::labels;
use crate::configure::Origin;
use crate::{Context, Engine, EngineError, HostDraft};

/// Hosts that are added between two questions: those that are on record are watched meanwhile.
const AT_ONCE: usize = 64;

/// Adds hosts of one platform.
pub(super) struct Adopter {
    backend: Backend,
    platform: String,
    segment: String,
    /// Hosts that were on record at some time: one that was removed since and is silent stays removed.
    had: BTreeSet<String>,
    /// Why hosts could not be added, so that only a change is told.
    told: BTreeMap<String, String>,
}

impl Adopter {
    pub fn new(platform: &dyn Platform, segment: String) -> Self {
        Self {
            backend: platform.kind(),
            platform: platform.name().to_owned(),
            segment,
            had: BTreeSet::new(),
            told: BTreeMap::new(),
        }
    }

    /// Adds those that are not on record, and live or were on the record of a Ringfence before. `true` if there are more of them, to be added after the next question.
    pub async fn take_in(
        &mut self,
        engine: &Engine,
        signs: &[Sign],
        known_as: &[&str],
    ) -> Result<bool, EngineError> {
        let known: BTreeSet<&str> = known_as.iter().copied().collect();
        let had = &self.had;
        let may_be_added = |sign: &Sign| lives(sign) || (sign.is_on_record && !had.contains(&sign.host));
        let is_new = |sign: &&Sign| !known.contains(sign.host.as_str()) && may_be_added(sign);
        let new = signs.iter().filter(is_new).map(|sign| sign.host.as_str());
        let new: Vec<&str> = new.collect();
        let unseen = known_as.iter().filter(|host| !self.had.contains(**host));
        let unseen: Vec<String> = unseen.map(|host| (*host).to_owned()).collect();
        self.had.extend(unseen);
        self.told.retain(|host, _| new.contains(&host.as_str()));
        if new.is_empty() {
            return Ok(false);
        }
        let Census { new, barred, .. } = self.census(engine, &new).await?;
        for (host, why) in barred {
            self.tell(host, why);
        }
        let are_more = new.len() > AT_ONCE;
        let mut is_any_added = false;
        for newcomer in new.into_iter().take(AT_ONCE) {
            let theirs = newcomer.known_as.as_deref().unwrap_or(&newcomer.name);
            let sign = signs.iter().find(|sign| sign.host == theirs);
            is_any_added |= self.add(engine, newcomer, sign).await;
        }
        // Those that cannot be added are not tried without a pause.
        Ok(are_more && is_any_added)
    }

    async fn census(&self, engine: &Engine, named: &[&str]) -> Result<Census, EngineError> {
        let hosts = ringfence_db::listed_hosts(&mut engine.0.db.reader()).await?;
        let listed: Vec<Listed<'_>> = hosts.iter().map(Listed::from).collect();
        Ok(census((self.backend, &self.platform), "", named, &listed))
    }

    /// `true` if the host was added.
    async fn add(&mut self, engine: &Engine, newcomer: Newcomer, sign: Option<&Sign>) -> bool {
        let theirs = newcomer.known_as.clone().unwrap_or(newcomer.name.clone());
        let draft = HostDraft {
            name: newcomer.name,
            segment: Some(self.segment.clone()),
            backend: self.backend,
            cloud: Some(self.platform.clone()),
            known_as: newcomer.known_as,
            host_type: sign.and_then(|sign| sign.host_type.clone()),
            zone: DEFAULT_ZONE.to_owned(),
            labels: sign
                .and_then(|sign| labels::of_platform(sign, &self.platform))
                .unwrap_or_default(),
            parameters: BTreeMap::new(),
        };
        let by = Context::own(&self.backend.label(&self.platform));
        match engine.create_host_as(draft, Origin::Adopted, &by).await {
            Ok(host) => {
                self.had.insert(theirs);
                tracing::info!(
                    platform = self.platform,
                    host = host.name,
                    "a host of the platform was added"
                );
                true
            }
            Err(error) => {
                self.tell(theirs, error_chain(&error));
                false
            }
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
fn lives(sign: &Sign) -> bool {
    sign.is_up && !sign.is_marked_down
}
