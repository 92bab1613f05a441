//! Records of hosts that outlive the database, where a platform keeps them.
//!
//! A record is written before the change is committed, and so before a claim is answered: what may act is on record. Where a record cannot be
//! written, nothing is changed. Where another process has taken the records over, this one has to end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_backends::{BackendError, Records, Writer, WrittenRecord};
use ringfence_core::{
    Backend, DEFAULT_ZONE, Due, Host, HostId, HostState, Labels, OperationId, Problems, Record, Restored,
    Timestamp, Unfinished, error_chain,
};
use ringfence_db::{Begun, Changes, Ended, HostWrite, Locking};
use tokio_util::sync::CancellationToken;

use crate::configure::Origin;
use crate::ids::new_id;
use crate::shared_answer::SharedAnswer;
use crate::{Context, Engine, EngineError, HostDraft};

/// What is known of the records.
pub(crate) struct RecordBook {
    records: Arc<dyn Records>,
    /// As they were last written.
    written: Mutex<HashMap<HostId, Record>>,
    /// Another process has taken them over.
    taken_over: CancellationToken,
    lead: SharedAnswer<Result<bool, Arc<BackendError>>>,
}

impl RecordBook {
    pub fn new(records: Arc<dyn Records>) -> Self {
        Self {
            records,
            written: Mutex::default(),
            taken_over: CancellationToken::new(),
            lead: SharedAnswer::default(),
        }
    }

    /// Whether the host is one of those that have records.
    pub fn has(&self, backend: Backend, cloud: Option<&str>) -> bool {
        backend == Backend::Kubernetes && cloud == Some(self.records.platform())
    }

    /// The platform whose hosts have records.
    pub fn platform(&self) -> &str {
        self.records.platform()
    }

    /// Does what is due before a host becomes this one.
    async fn put(
        &self,
        state: &HostState,
        is_claimed: bool,
        written_at: Timestamp,
    ) -> Result<(), EngineError> {
        let host = &state.host;
        let due = Due::before(self.written.lock().get(&host.id), state, is_claimed);
        let record = match due {
            Due::Nothing => return Ok(()),
            Due::Own => return self.confirm(host).await,
            Due::Written(record) => *record,
        };
        // Whether it is written when this fails is not known.
        self.written.lock().remove(&host.id);
        let written = WrittenRecord {
            written_at,
            host: record,
        };
        let writer = self.records.write(name_of(host), &written).await;
        self.require_own(host, writer)?;
        self.written.lock().insert(host.id, written.host);
        Ok(())
    }

    async fn confirm(&self, host: &Host) -> Result<(), EngineError> {
        self.require_own(host, self.records.writer(name_of(host)).await)
    }

    fn require_own(&self, host: &Host, writer: Result<Writer, BackendError>) -> Result<(), EngineError> {
        match writer.map_err(EngineError::Record)? {
            Writer::Own => Ok(()),
            Writer::Other => {
                if !self.taken_over.is_cancelled() {
                    tracing::error!(
                        host = host.name,
                        "another Ringfence has taken the records over; this one ends"
                    );
                }
                self.taken_over.cancel();
                Err(EngineError::TakenOver {
                    host: host.name.clone(),
                })
            }
        }
    }
}

fn name_of(host: &Host) -> &str {
    host.known_as.as_deref().unwrap_or(&host.name)
}

impl Engine {
    /// Waits until another process has taken the records over; for ever where hosts have none.
    pub async fn records_taken_over(&self) {
        match &self.0.records {
            Some(book) => book.taken_over.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Writes the records of hosts as they are to be; the flag says whether a worker is to act upon it.
    pub(crate) async fn put_on_record(
        &self,
        states: impl IntoIterator<Item = (HostState, bool)>,
    ) -> Result<(), EngineError> {
        let Some(book) = &self.0.records else {
            return Ok(());
        };
        let written_at = self.0.clock.now();
        for (state, is_claimed) in states {
            book.put(&state, is_claimed, written_at).await?;
        }
        Ok(())
    }

    /// Removes the record of a host that was removed. One that stays brings the host back with the next process that takes the records over.
    pub(crate) async fn remove_record(&self, host: &Host) {
        let book = self.0.records.as_ref();
        let Some(book) = book.filter(|book| book.has(host.backend, host.cloud.as_deref())) else {
            return;
        };
        book.written.lock().remove(&host.id);
        if let Err(error) = book.records.remove(name_of(host), host.id).await {
            let error = error_chain(&error);
            tracing::warn!(
                host = host.name,
                error,
                "the record of a removed host could not be removed"
            );
        }
    }

    /// Makes certain that the record of a host is still this process's to write, so that what its database says of the host holds.
    ///
    /// # Errors
    /// It is not, or that is not known.
    pub async fn confirm_record(&self, host: &Host) -> Result<(), EngineError> {
        let Some(book) = &self.0.records else {
            return Ok(());
        };
        book.confirm(host).await
    }

    /// Makes certain that this process leads at a moment after the call began: no other one had begun to take the records over then, so that
    /// what this process's database says held. Answers that are wanted at one time share one look.
    ///
    /// # Errors
    /// It does not, or that is not known.
    pub async fn confirm_lead(&self) -> Result<(), EngineError> {
        let Some(book) = &self.0.records else {
            return Ok(());
        };
        let look = || async { book.records.is_led_here().await.map_err(Arc::new) };
        if book.lead.get(look).await.map_err(EngineError::Lead)? {
            return Ok(());
        }
        if !book.taken_over.is_cancelled() {
            tracing::error!("another Ringfence leads; this one ends");
        }
        book.taken_over.cancel();
        Err(EngineError::NotLeading)
    }

    /// Where hosts have records, each host has to be one of those that can have one.
    pub(crate) fn require_record(&self, draft: &HostDraft) -> Result<(), EngineError> {
        let Some(book) = &self.0.records else {
            return Ok(());
        };
        if book.has(draft.backend, draft.cloud.as_deref()) {
            return Ok(());
        }
        let mut problems = Problems::default();
        let platform = book.platform();
        problems.add(
            "cloud",
            format!("this Ringfence keeps the nodes of cluster {platform} alone; backend kubernetes and cloud {platform:?} are allowed"),
        );
        problems.into_result().map_err(EngineError::Invalid)
    }

    /// Takes the records over, and adds their hosts to a database that knows none. Operations that were live begin anew. `segment`: that of
    /// the platform's hosts.
    ///
    /// # Errors
    /// The records cannot be taken over, or a host cannot be added.
    pub async fn restore_hosts(&self, segment: Option<&str>) -> Result<usize, EngineError> {
        let Some(book) = &self.0.records else { return Ok(0) };
        let records = book.records.take_over().await.map_err(EngineError::Record)?;
        let count = records.len();
        let mut unfinished = Vec::new();
        for (node, written) in records {
            let (host, begins_anew) = self.restore(book, node, written, segment).await?;
            unfinished.extend(begins_anew.map(|begins_anew| (host, begins_anew)));
        }
        for (host, begins_anew) in unfinished {
            self.begin_anew(host, begins_anew).await?;
        }
        Ok(count)
    }

    async fn restore(
        &self,
        book: &RecordBook,
        node: String,
        written: WrittenRecord,
        segment: Option<&str>,
    ) -> Result<(HostId, Option<Unfinished>), EngineError> {
        let draft = HostDraft {
            name: node,
            segment: segment.map(str::to_owned),
            backend: Backend::Kubernetes,
            cloud: Some(book.platform().to_owned()),
            known_as: None,
            host_type: None,
            labels: Labels::new(),
            zone: DEFAULT_ZONE.to_owned(),
            parameters: BTreeMap::new(),
        };
        let WrittenRecord {
            written_at,
            host: record,
        } = written;
        let by = Context::own("ringfence");
        let id = record.host_id;
        self.create_host_as(draft, Origin::Restored(id), &by).await?;
        let db = &self.0.db;
        let Begun {
            hosts, transaction, ..
        } = db.begin_with_hosts(&[id], Locking::Pessimistic).await?;
        let fresh = hosts
            .into_iter()
            .next()
            .ok_or_else(|| EngineError::not_found("host", id.to_string()))?;
        let known = fresh.host.clone();
        let Restored {
            host,
            proven_by,
            unfinished,
        } = record.restore(fresh, written_at);
        let proofs = proven_by.iter().flat_map(|operation| &operation.proofs);
        let changes = Changes {
            proofs: proofs.map(|proof| (id, proof)).collect(),
            new_operations: proven_by.iter().collect(),
            hosts: vec![HostWrite {
                host: &host,
                known: Some(&known),
                wake_at: Some(self.0.clock.now()),
            }],
            ..Changes::default()
        };
        match transaction.commit(&changes).await? {
            Ended::Committed { .. } => {}
            Ended::HostsChanged | Ended::Refused { .. } => return Err(EngineError::Interrupted),
        }
        let state = host.fencing_state();
        tracing::info!(host = host.name, %state, "a host was restored from its record");
        Ok((id, unfinished))
    }

    /// What the rules refuse is told, and left to a person or to what is automatic. Where the request could not be made, the operation is
    /// still on record, and the process has to begin again.
    async fn begin_anew(&self, host_id: HostId, unfinished: Unfinished) -> Result<(), EngineError> {
        let kind = unfinished.kind;
        match self.try_to_begin_anew(host_id, unfinished).await {
            Ok(()) => tracing::info!(%host_id, %kind, "an operation of the Ringfence before begins anew"),
            Err(error @ EngineError::Refused(_)) => {
                tracing::warn!(%host_id, %kind, error = %error_chain(&error), "an operation of the Ringfence before cannot begin anew; ask for it again");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn try_to_begin_anew(&self, host_id: HostId, unfinished: Unfinished) -> Result<(), EngineError> {
        let input = unfinished.request(OperationId(new_id()));
        let by = Context::own("ringfence");
        self.apply(host_id, input, &by).await.map(drop)
    }
}
