//! `ringfence engine`.

use ringfence_engine::Exposition;
use ringfence_operator::Operator;

use super::{metrics, parts, stop};
use crate::config::Settings;
use crate::error::CliError;
use crate::{platforms, traces};

/// Runs until the process is told to stop.
pub async fn run(settings: Settings) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    platforms::refuse_records("engine", &settings)?;
    metrics::check(&settings)?;
    let operated = platforms::operated(&settings)?;
    let keys = parts::keys(&settings)?;
    let bus = parts::broker("engine", &settings.engine.name, &settings)?;
    let Some(db) = parts::database("engine", &settings, &stop).await? else {
        return Ok(());
    };
    let engine = parts::engine("engine", &settings, db, bus, keys, None).await?;
    let metrics = metrics::serve("engine", &settings, &stop, || {
        let mut exposition = Exposition::new(Some(engine.clone()));
        traces::register_metrics(exposition.registry());
        exposition
    })?;
    let mut running = engine.start();
    let operator = Operator::start(&engine, operated);
    for event_sink in [
        parts::event_exchange("engine", &settings)?,
        parts::oslo("engine", &settings)?,
    ] {
        event_sink
            .into_iter()
            .for_each(|event_sink| running.tell(&engine, event_sink));
    }
    tracing::info!(engine = settings.engine.name, "the engine runs");
    stop.cancelled().await;
    operator.stop().await;
    running.stop().await;
    metrics.wait().await;
    Ok(())
}
