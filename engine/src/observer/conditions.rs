//! Conditions that a platform tells of its hosts: told once, and again when they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringfence_core::{Poll, ReportedCondition, error_chain};
use ringfence_db::CloudHost;

use crate::{Context, Engine};

/// Hosts whose conditions one look takes down: the next look goes on.
const TOLD_AT_ONCE: usize = 64;

/// What one engine has taken down of the hosts of one platform.
#[derive(Default)]
pub(super) struct Conditions {
    told: BTreeMap<String, Arc<[ReportedCondition]>>,
}

impl Conditions {
    /// Takes down what is new, of hosts whose segments do something about conditions. `true` if there is more of it.
    pub async fn look(&mut self, engine: &Engine, source: &str, poll: &Poll, hosts: &[CloudHost]) -> bool {
        let signs: BTreeMap<&str, &Arc<[ReportedCondition]>> = poll
            .hosts
            .iter()
            .map(|sign| (sign.host.as_str(), &sign.conditions))
            .collect();
        self.told.retain(|host, _| signs.contains_key(host.as_str()));
        let new: Vec<(&CloudHost, Arc<[ReportedCondition]>)> = hosts
            .iter()
            .filter_map(|host| {
                let said = signs.get(host.known_as.as_str())?;
                let said = if host.wants_conditions {
                    Arc::clone(said)
                } else {
                    Arc::default()
                };
                let is_known = match self.told.get(&host.known_as) {
                    Some(told) => *told == said,
                    None => said.is_empty() && !host.has_conditions,
                };
                (!is_known).then_some((host, said))
            })
            .collect();
        let are_more = new.len() > TOLD_AT_ONCE;
        for (host, said) in new.into_iter().take(TOLD_AT_ONCE) {
            let by = Context::own(source);
            let id = host.id.to_string();
            match engine
                .report_conditions(&id, source, (said.to_vec(), None), &by)
                .await
            {
                Ok(_) => drop(self.told.insert(host.known_as.clone(), said)),
                Err(error) => {
                    tracing::warn!(host = host.name, error = %error_chain(&error), "the conditions of a host could not be taken down");
                }
            }
        }
        are_more
    }
}
