//! Why a story could not be simulated.

use std::io;

use ringfence_bus::BusError;
use ringfence_db::DbError;
use ringfence_engine::EngineError;

/// Why a story could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// There is no room for the copy.
    #[error("a folder for the copy of the state cannot be made")]
    Folder(#[source] io::Error),
    /// The copy's database failed.
    #[error("the database of the copy cannot be used")]
    Database(#[from] DbError),
    /// The copy's bus failed.
    #[error("the bus of the copy cannot be used")]
    Bus(#[from] BusError),
    /// The engine refused a step.
    #[error("{doing}")]
    Step {
        /// What it was asked for.
        doing: String,
        /// Why not.
        #[source]
        source: Box<EngineError>,
    },
    /// Too much happens at one moment, or altogether.
    #[error("the simulation does not end: after {steps} steps it has come to {at}")]
    Endless {
        /// Steps until then.
        steps: u64,
        /// The simulated time.
        at: String,
    },
}

impl SimulationError {
    pub(crate) fn step(doing: impl Into<String>) -> impl FnOnce(EngineError) -> Self {
        let doing = doing.into();
        |source| Self::Step {
            doing,
            source: Box::new(source),
        }
    }
}
