//! What a fence of a host would cost a Ceph.
//!
//! Many hosts may be asked about at one time, in a storm: what the Ceph tells of itself is read once for all who ask within some seconds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use parking_lot::Mutex;
use ringfence_core::{CephMaps, CephSurvey, error_chain};
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use super::maps::Printed;
use super::program::{Ceph, is_definite, words};
use crate::WorkerError;
use crate::driver::HostInStorage;
use crate::process::{Ended, ProcessError};

/// For how long what was read is told again.
const TOLD_FOR: Duration = Duration::from_secs(3);
/// Cephs whose maps are kept.
const MAX_KNOWN: usize = 16;
/// The code of `osd ok-to-stop` for a no.
const BUSY: i32 = 16;

type Known = Arc<Turn<Option<(Instant, Arc<CephMaps>)>>>;

/// What Cephs have told of themselves.
#[derive(Default)]
pub(super) struct KnownMaps(Mutex<HashMap<String, Known>>);

impl KnownMaps {
    pub async fn survey(
        &self,
        ceph: &Ceph<'_>,
        about: HostInStorage<'_>,
        until: Instant,
    ) -> Result<CephSurvey, WorkerError> {
        let maps = self.maps(ceph, until).await?;
        let told = maps.survey(about.host, about.gone, None);
        let up = maps.up_on(about.host);
        if up.is_empty() {
            return Ok(told);
        }
        let is_ok = ok_to_stop(ceph, &up, until).await?;
        Ok(CephSurvey {
            is_ok_to_stop: Some(is_ok),
            ..told
        })
    }

    async fn maps(&self, ceph: &Ceph<'_>, until: Instant) -> Result<Arc<CephMaps>, WorkerError> {
        let known = self.of(&ceph.place());
        let mut known = known.lock().await;
        if let Some((read_at, maps)) = known.as_ref()
            && read_at.elapsed() < TOLD_FOR
        {
            return Ok(Arc::clone(maps));
        }
        let read_at = Instant::now();
        let maps = Arc::new(read(ceph, until).await?);
        *known = Some((read_at, Arc::clone(&maps)));
        Ok(maps)
    }

    fn of(&self, place: &str) -> Known {
        let mut all = self.0.lock();
        if all.len() >= MAX_KNOWN && !all.contains_key(place) {
            all.clear();
        }
        Arc::clone(all.entry(place.to_owned()).or_default())
    }
}

async fn read(ceph: &Ceph<'_>, until: Instant) -> Result<CephMaps, WorkerError> {
    let asked = Printed::COMMANDS.map(|command| print(ceph, command, until));
    let printed = try_join_all(asked).await?;
    let [osds, tree, rules, osd_metadata, quorum, monitor_metadata, groups] =
        <[String; 7]>::try_from(printed).map_err(|_| WorkerError::unclear("an answer is missing"))?;
    let printed = Printed {
        osds,
        tree,
        rules,
        osd_metadata,
        quorum,
        monitor_metadata,
        groups,
    };
    printed.maps().map_err(WorkerError::unclear)
}

async fn print(ceph: &Ceph<'_>, command: &[&str], until: Instant) -> Result<String, WorkerError> {
    let ended = run(ceph, command, until).await?;
    match ended.code {
        Some(0) => Ok(ended.stdout),
        _ => Err(refused(&command.join(" "), &ended)),
    }
}

async fn ok_to_stop(ceph: &Ceph<'_>, osds: &[i32], until: Instant) -> Result<bool, WorkerError> {
    let osds: Vec<String> = osds.iter().map(i32::to_string).collect();
    let command: Vec<&str> = ["osd", "ok-to-stop"]
        .into_iter()
        .chain(osds.iter().map(String::as_str))
        .collect();
    let ended = run(ceph, &command, until).await?;
    match ended.code {
        Some(0) => Ok(true),
        Some(BUSY) => Ok(false),
        _ => Err(refused("osd ok-to-stop", &ended)),
    }
}

async fn run(ceph: &Ceph<'_>, command: &[&str], until: Instant) -> Result<Ended, WorkerError> {
    let command = [command, &["--format", "json"]].concat();
    ceph.run(&command, until).await.map_err(|error| match error {
        error @ ProcessError::Missing(_) => WorkerError::refused(error.to_string()),
        error => WorkerError::unclear(error_chain(&error)),
    })
}

fn refused(command: &str, ended: &Ended) -> WorkerError {
    let said = format!("{command}: {}", words(ended));
    if is_definite(ended) {
        WorkerError::refused(said)
    } else {
        WorkerError::unclear(said)
    }
}
