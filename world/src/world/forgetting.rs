//! A database that is only a cache of records, and vanishes.

use ringfence_core::*;

use super::{World, through_json};
use crate::{judge, plans};

impl World {
    /// The engine is gone with its database and its bus, and another one starts with the record of the host alone. Workers that are under
    /// way act until they stop by themselves.
    pub(super) fn forget_all(&mut self) {
        let written_at = self.last_decided.min(self.now);
        let record = through_json(&Record::of(&self.state)).map(|record| (record, written_at));
        self.begin_with(record);
    }

    /// An engine begins with the record of the host, and when that was written.
    pub(super) fn begin_with(&mut self, record: Option<(Record, Timestamp)>) {
        self.sent.clear();
        let known = &self.state.host;
        let fresh = Host {
            backend: known.backend,
            cloud: known.cloud.clone(),
            created_at: self.now,
            updated_at: self.now,
            ..plans::host()
        };
        let lost = self
            .state
            .operation
            .take()
            .filter(|operation| operation.status.is_live());
        self.state.host = fresh;
        let restored = record.map(|(record, written_at)| record.restore(self.state.clone(), written_at));
        let unfinished = restored.and_then(|restored| {
            self.state.host = restored.host;
            self.state.operation = restored.proven_by.filter(|operation| operation.status.is_live());
            restored.unfinished
        });
        self.wake_at = Some(self.now);
        self.settle();
        if let Some(unfinished) = unfinished {
            drop(self.begin_anew(unfinished));
        }
        if let Some(lost) = lost {
            judge::resumed(self, &lost);
        }
    }

    /// What the new engine does with an operation that was live.
    fn begin_anew(&mut self, unfinished: Unfinished) -> Result<Reply, Refusal> {
        let operation_id = OperationId(self.next_id());
        self.give(unfinished.request(operation_id))
    }
}
