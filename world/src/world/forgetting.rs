//! A database that is only a cache of records, and vanishes.

use ringfence_core::*;

use super::{World, through_json};
use crate::plans;

impl World {
    /// The engine is gone with its database and its bus, and another one starts with the record of the host alone. Workers that are under
    /// way act until they stop by themselves.
    pub fn forget(&mut self) {
        self.sent.clear();
        let written_at = self.last_decided.min(self.now);
        let known = &self.state.host;
        let fresh = Host {
            backend: known.backend,
            cloud: known.cloud.clone(),
            ..plans::host()
        };
        let record = through_json(&Record::of(&self.state));
        self.state.host = fresh;
        let restored = record.map(|record| record.restore(self.state.clone(), written_at));
        let unfinished = restored.and_then(|restored| {
            self.state.host = restored.host;
            restored.unfinished
        });
        self.state.operation = None;
        self.wake_at = Some(self.now);
        self.settle();
        if let Some(unfinished) = unfinished {
            drop(self.begin_anew(unfinished));
        }
    }

    /// What the new engine does with an operation that was live.
    fn begin_anew(&mut self, unfinished: Unfinished) -> Result<Reply, Refusal> {
        let operation_id = OperationId(self.next_id());
        self.give(unfinished.request(operation_id))
    }
}
