//! Hosts that their platform no longer names: since when is written down, and those that were added by themselves are removed by themselves,
//! where that is wanted and the platform says for certain that they have left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_backends::{Departure, Platform};
use ringfence_core::{HostId, Poll, Resident, Timestamp, departures, error_chain, may_remove_departed};
use ringfence_db::CloudHost;
use tokio::time::Instant;

use crate::{Context, Engine, EngineError};

/// A host is asked after no more often than this.
const EVERY: Duration = Duration::from_secs(20);
/// Hosts that are asked after in one look: meanwhile no sighting of a host is reported.
const ASKED_AT_ONCE: usize = 4;
/// Hosts of which one look writes down that they have left, or are back; the next look goes on.
const NOTED_AT_ONCE: usize = 64;

/// What one engine knows of the hosts that have left one platform.
pub(super) struct Departing {
    /// How long a host has to be away; `None` if none is removed.
    remove_after: Option<TimeDelta>,
    asked_at: BTreeMap<HostId, Instant>,
    /// Why a host stays, so that only a change is told.
    told: BTreeMap<HostId, String>,
}

impl Departing {
    pub fn new(remove_after: Option<TimeDelta>) -> Self {
        Self {
            remove_after,
            asked_at: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Takes a complete list of the platform's hosts.
    pub async fn look(
        &mut self,
        engine: &Engine,
        platform: &dyn Platform,
        poll: &Poll,
        hosts: &[CloudHost],
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let named: BTreeSet<&str> = poll.hosts.iter().map(|sign| sign.host.as_str()).collect();
        let on_record: Vec<Resident<'_>> = hosts.iter().map(resident).collect();
        let found = departures(
            &named,
            &on_record,
            self.remove_after,
            now,
            engine.0.clock.set_at(),
        );
        let left = found.left.into_iter().map(|id| (id, Some(now)));
        let changed = left.chain(found.back.into_iter().map(|id| (id, None)));
        for (id, left_at) in changed.take(NOTED_AT_ONCE) {
            let mut tx = engine.0.db.begin().await?;
            ringfence_db::set_left(&mut tx, id, left_at).await?;
            tx.commit().await?;
        }
        self.asked_at.retain(|id, _| found.due.contains(id));
        self.told.retain(|id, _| found.due.contains(id));
        let is_due = |id: &HostId| self.asked_at.get(id).is_none_or(|at| at.elapsed() >= EVERY);
        let due: Vec<HostId> = found.due.into_iter().filter(is_due).take(ASKED_AT_ONCE).collect();
        for id in due {
            self.asked_at.insert(id, Instant::now());
            self.remove(engine, platform, id).await?;
        }
        Ok(())
    }

    /// The host is read before the platform is asked: what changes meanwhile keeps it.
    async fn remove(
        &mut self,
        engine: &Engine,
        platform: &dyn Platform,
        id: HostId,
    ) -> Result<(), EngineError> {
        let state = ringfence_db::load_state(&mut engine.0.db.reader(), &id.to_string()).await?;
        let Some(state) = state else { return Ok(()) };
        let host = &state.host;
        if let Err(refusal) = may_remove_departed(&state, engine.0.clock.now()) {
            self.tell(platform, id, &host.name, &refusal.to_string());
            return Ok(());
        }
        match platform.departure(host.known_as()).await {
            Ok(Departure::Gone) => {}
            Ok(Departure::Remains(what)) => {
                self.tell(platform, id, &host.name, &what);
                return Ok(());
            }
            Ok(Departure::NotTold) => return Ok(()),
            Err(error) => {
                self.tell(platform, id, &host.name, &error_chain(&error));
                return Ok(());
            }
        }
        let label = platform.label();
        let why =
            format!("{label} has not named the host for a time, and nothing in it names the host any more");
        match engine
            .remove_departed_host(host, &why, &Context::own(&label))
            .await
        {
            Ok(()) => tracing::info!(
                platform = platform.name(),
                host = host.name,
                "a host that has left its platform was removed"
            ),
            Err(error) => self.tell(platform, id, &host.name, &error_chain(&error)),
        }
        Ok(())
    }

    fn tell(&mut self, platform: &dyn Platform, id: HostId, host: &str, why: &str) {
        if self.told.get(&id).is_none_or(|told| told != why) {
            let platform = platform.name();
            tracing::info!(
                platform,
                host,
                why,
                "a host that its platform does not name is kept"
            );
            self.told.insert(id, why.to_owned());
        }
    }
}

fn resident(host: &CloudHost) -> Resident<'_> {
    Resident {
        id: host.id,
        known_as: &host.known_as,
        is_adopted: host.is_adopted,
        left_at: host.left_at,
    }
}
