//! The simulation's own engine, whose loops do not run, on a database in a folder that is removed with it.

use std::sync::Arc;

use chrono::TimeDelta;
use ringfence_bus::{Key, Keys};
use ringfence_core::{Catalogue, Timestamp};
use ringfence_db::{Database, migrate};
use ringfence_engine::{ClockSource, Engine, EngineConfig, Parts};
use tempfile::TempDir;
use uuid::Uuid;

use crate::bus::SimulatedBus;
use crate::{Assumptions, SimulationError};

pub(crate) struct OwnEngine {
    pub engine: Engine,
    db: Database,
    /// Removed when it is dropped, after the database was closed.
    folder: TempDir,
}

impl OwnEngine {
    pub async fn start(
        at: Timestamp,
        drivers: Catalogue,
        assumptions: Arc<Assumptions>,
    ) -> Result<Self, SimulationError> {
        let folder = tempfile::Builder::new().prefix("ringfence-simulation-").tempdir();
        let folder = folder.map_err(SimulationError::Folder)?;
        let db = Database::open_passing(&folder.path().join("copy.db")).await?;
        migrate(&db).await?;
        let keys = keys()?;
        let bus = SimulatedBus {
            keys: keys.clone(),
            assumptions,
        };
        let parts = Parts {
            db: db.clone(),
            bus: Arc::new(bus),
            keys,
            clock: ClockSource::Manual(at),
            drivers,
        };
        let engine = Engine::new(parts, EngineConfig::default()).await;
        let engine = engine.map_err(SimulationError::step("the engine of the copy is made"))?;
        Ok(Self { engine, db, folder })
    }

    pub fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }

    /// Time passes; it never runs backwards.
    pub fn pass_until(&self, at: Timestamp) {
        let by = (at - self.now()).max(TimeDelta::zero());
        self.engine.clock().advance(by);
    }

    pub async fn end(self) {
        self.db.close().await;
        drop(self.folder);
    }
}

/// Of no other process: what is signed with it is never seen outside of this one.
fn keys() -> Result<Keys, SimulationError> {
    let secret = [*Uuid::new_v4().as_bytes(), *Uuid::new_v4().as_bytes()].concat();
    Ok(Keys::new(vec![Key::new("simulation", &secret)?])?)
}
