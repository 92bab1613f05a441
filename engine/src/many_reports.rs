//! What an observer saw of many hosts.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use ringfence_core::{HostId, HostState, Report};
use uuid::Uuid;

use crate::{Context, Engine, EngineError};

/// How many reports of one request wait for a transaction at a time: enough to fill some transactions, and few enough that the reports of
/// other requests, which wait behind them, are not delayed.
const AT_ONCE: usize = 64;

impl Engine {
    /// Takes down reports as [`Engine::report_failure_state`] does, each for the host of this id or name; they share transactions. One
    /// that is refused keeps no other from being taken. Hosts are fenced only after all of it is known, so that the storm brake sees how many
    /// fell silent.
    ///
    /// # Errors
    /// No report was taken: the database is not there.
    pub async fn report_failure_states(
        &self,
        reports: Vec<(String, Report)>,
        by: &Context,
    ) -> Result<Vec<Result<HostState, EngineError>>, EngineError> {
        let names = reports.iter().map(|(host, _)| host);
        let names = names.filter(|host| Uuid::parse_str(host).is_err()).cloned();
        let mut reader = self.0.db.reader_by_keys();
        let ids = ringfence_db::host_ids(&mut reader, names.collect()).await?;
        let ids = &ids;
        let taken = reports.into_iter().map(async |(host, report)| {
            self.check_report(&report)?;
            let id = id_of(host, ids)?;
            self.take_report(id, report, by).await
        });
        let taken: Vec<Result<HostState, EngineError>> =
            stream::iter(taken).buffered(AT_ONCE).collect().await;
        stream::iter(taken.iter().flatten())
            .for_each_concurrent(AT_ONCE, |state| self.fence_if_due(state))
            .await;
        Ok(taken)
    }
}

fn id_of(host: String, ids: &HashMap<String, HostId>) -> Result<HostId, EngineError> {
    let by_id = || Uuid::parse_str(&host).ok().map(HostId);
    let found = ids.get(&host).copied().or_else(by_id);
    found.ok_or_else(|| EngineError::not_found("host", host))
}
