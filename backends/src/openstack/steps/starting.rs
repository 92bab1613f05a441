//! After UNFENCED: servers may be placed on the host again, and those that remained on it and should run are started.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::BackendError;
use crate::openstack::{EvacuationStatus, Server, ServerAction, VmState};
use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};

use super::{Done, REASON};
use crate::openstack::host::{HostOf, PAUSE};

/// Nova's power state of a guest that runs.
const RUNNING: i64 = 1;
/// A server that is idle without a task is asked for again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// How many of a server's actions are searched for its owner's last wish.
const ACTIONS: u32 = 50;

impl HostOf<'_> {
    /// Lets servers be placed on the host again, and starts those that should run.
    pub(super) async fn start(&self, fenced_at: Option<DateTime<Utc>>) -> Result<Done, BackendError> {
        let Some(service) = self.service().await? else {
            return Ok(self.unknown_host());
        };
        let is_ours = service.disabled_reason.as_deref() == Some(REASON);
        let open = if service.is_enabled() || is_ours {
            if is_ours {
                self.cloud.enable(&service.id).await?;
            }
            match self.until_open().await? {
                Done::So(open) => open,
                not_open => return Ok(not_open),
            }
        } else {
            let why = service
                .disabled_reason
                .unwrap_or_else(|| "no reason given".to_owned());
            format!("{} stays disabled by an administrator ({why})", self.host)
        };
        let mut waking = Waking::new(fenced_at);
        self.until_all_run(&open, &mut waking).await
    }

    /// Asks for each server, and looks until all of them run.
    async fn until_all_run(&self, open: &str, waking: &mut Waking) -> Result<Done, BackendError> {
        loop {
            let servers = self.cloud.servers_on(self.host).await?;
            let mut idle = Vec::new();
            for server in &servers {
                if self.should_run_and_does_not(server, waking).await? {
                    idle.push(server);
                }
            }
            if idle.is_empty() {
                let started = waking.asked.len();
                return Ok(Done::So(format!("{open}; {started} servers were started")));
            }
            for server in &idle {
                if server.task_state.is_none() && waking.is_to_ask(&server.id) {
                    // A hard reboot connects volumes and ports anew, and Nova accepts it for active and stopped servers. A refusal for one
                    // server does not stop the start of others.
                    match self.cloud.reboot_hard(&server.id).await {
                        Ok(_) | Err(BackendError::Refused { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            if !self.has_time() {
                let names: Vec<&str> = idle.iter().map(|server| server.name.as_str()).collect();
                return Ok(Done::NotYet(
                    format!("{open}; not running: {}", names.join(", ")),
                    None,
                ));
            }
            sleep(PAUSE).await;
        }
    }

    /// For Nova the server is active and its guest does not run; or Nova itself has called it stopped, when it found the guest shut off
    /// after the boot; or its evacuation has failed, which leaves it in ERROR.
    async fn should_run_and_does_not(
        &self,
        server: &Server,
        waking: &mut Waking,
    ) -> Result<bool, BackendError> {
        match server.vm_state {
            VmState::Active => Ok(server.power_state != RUNNING),
            VmState::Stopped => {
                if let Some(known) = waking.stopped.get(&server.id) {
                    return Ok(*known);
                }
                let is_novas = self.was_stopped_by_nova(server, waking.since).await?;
                // While a task is under way, the last action may not be on record yet.
                if server.task_state.is_none() {
                    waking.stopped.insert(server.id.clone(), is_novas);
                }
                Ok(is_novas)
            }
            VmState::Error => {
                if let Some(known) = waking.failed.get(&server.id) {
                    return Ok(*known);
                }
                let is_to_run = self.ran_before_its_evacuation(server, waking.since).await?;
                waking.failed.insert(server.id.clone(), is_to_run);
                Ok(is_to_run)
            }
            VmState::Building | VmState::Deleted | VmState::ShelvedOffloaded | VmState::Other(_) => Ok(false),
        }
    }

    /// Whether the server is in ERROR because no host could take it, this was the last action, and it had not been stopped before.
    async fn ran_before_its_evacuation(
        &self,
        server: &Server,
        since: Option<DateTime<Utc>>,
    ) -> Result<bool, BackendError> {
        let last = self.last_evacuation(&server.id).await?;
        if last.is_none_or(|last| last.status != EvacuationStatus::Failed) {
            return Ok(false);
        }
        let actions = self.cloud.last_actions(&server.id, ACTIONS).await?;
        Ok(was_running(&actions, since))
    }

    /// Whether Nova itself stopped the server after the host was FENCED. A stop from before may be the owner's, who shut the guest down
    /// from within.
    async fn was_stopped_by_nova(
        &self,
        server: &Server,
        since: Option<DateTime<Utc>>,
    ) -> Result<bool, BackendError> {
        let Some(last) = self.cloud.last_action(&server.id).await? else {
            return Ok(false);
        };
        Ok(is_novas_stop(&last, since))
    }
}

/// Whether Nova stopped a guest that it found shut off after the boot.
fn is_novas_stop(action: &ServerAction, since: Option<DateTime<Utc>>) -> bool {
    let is_later = action.start_time.zip(since).is_some_and(|(at, since)| at > since);
    action.action == "stop" && action.user_id.is_none() && is_later
}

/// Whether a server was to run before its evacuation, if the evacuation was the last action; the newest action comes first.
fn was_running(actions: &[ServerAction], since: Option<DateTime<Utc>>) -> bool {
    let mut done = actions
        .iter()
        .filter(|action| !is_novas_stop(action, since))
        .map(|action| action.action.as_str());
    if done.next() != Some("evacuate") {
        return false;
    }
    done.find(|action| *action != "evacuate") != Some("stop")
}

/// The servers that are being started.
struct Waking {
    since: Option<DateTime<Utc>>,
    /// When each was asked for last.
    asked: BTreeMap<String, Instant>,
    /// The stopped servers, and whether each should run.
    stopped: BTreeMap<String, bool>,
    /// The servers in ERROR, and whether each should run.
    failed: BTreeMap<String, bool>,
}

impl Waking {
    fn new(since: Option<DateTime<Utc>>) -> Self {
        Self {
            since,
            asked: BTreeMap::new(),
            stopped: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Whether it is to be asked for now. At the start of a compute Nova stops servers whose guests it finds shut off: it refuses a reboot meanwhile, and a server whose stop
    /// is carried out after its reboot is stopped again.
    fn is_to_ask(&mut self, server: &str) -> bool {
        let now = Instant::now();
        let is_to_ask = self.asked.get(server).is_none_or(|at| now - *at >= AGAIN_AFTER);
        if is_to_ask {
            self.asked.insert(server.to_owned(), now);
        }
        is_to_ask
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn actions(newest_first: &[(&str, Option<&str>, u32)]) -> Vec<ServerAction> {
        let action = |(action, user, minute): &(&str, Option<&str>, u32)| {
            let start_time = format!("2026-01-01T12:{minute:02}:00.000000");
            serde_json::from_value(json!({ "action": action, "user_id": user, "start_time": start_time }))
                .unwrap()
        };
        newest_first.iter().map(action).collect()
    }

    #[test]
    fn what_ran_until_no_host_could_take_it_was_to_run() {
        let fenced = DateTime::parse_from_rfc3339("2026-01-01T12:30:00Z")
            .unwrap()
            .to_utc();
        let us = Some("us");
        for (done, was) in [
            (vec![("evacuate", us, 30), ("create", us, 1)], true),
            (
                vec![("evacuate", us, 31), ("evacuate", us, 30), ("start", us, 2)],
                true,
            ),
            (
                vec![("stop", None, 40), ("evacuate", us, 30), ("create", us, 1)],
                true,
            ),
            (
                vec![("evacuate", us, 30), ("stop", us, 2), ("create", us, 1)],
                false,
            ),
            // Its owner had shut it down from within.
            (
                vec![("evacuate", us, 30), ("stop", None, 2), ("create", us, 1)],
                false,
            ),
            (
                vec![("reboot", us, 40), ("evacuate", us, 30), ("create", us, 1)],
                false,
            ),
            (vec![], false),
        ] {
            assert_eq!(was_running(&actions(&done), Some(fenced)), was, "{done:?}");
        }
    }
}
