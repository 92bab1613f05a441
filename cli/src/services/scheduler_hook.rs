//! `ringfence scheduler-hook`.

use ringfence_api::{ApiConfig, Application, RateLimits};
use ringfence_engine::{Clock, ClockSource};
use ringfence_scheduler_hook::Confirmation;

use super::{api, hangup, identity, listen, parts, stop};
use crate::clock::now;
use crate::config::Settings;
use crate::error::CliError;
use crate::platforms;
use crate::traces;

const NAME: &str = "scheduler-hook";

/// Runs until the process is told to stop. The hook reads the database and writes nothing, and needs no broker.
pub async fn run(settings: Settings) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    platforms::refuse_records("scheduler-hook", &settings)?;
    listen::check("scheduler_hook.listen", settings.scheduler_hook.listen)?;
    let tokens = identity::tokens(&settings)?;
    let config = ApiConfig {
        limits: limits(&settings),
        ..api::config(NAME, &settings, settings.scheduler_hook.listen)?
    };
    settings.hook_ages()?;
    let Some(db) = parts::database(NAME, &settings, &stop).await? else {
        return Ok(());
    };
    let clock = Clock::start(ClockSource::Database, &db).await;
    let clock = clock.map_err(|error| CliError::service(NAME, "cannot read the database's clock", error))?;
    let hook = parts::hook(&settings, db.clone(), &clock, Confirmation::default())?;
    let mut application = Application::build_hook(config, hook, clock.clone(), tokens)
        .map_err(|error| api::fault(NAME, error))?;
    traces::register_metrics(application.metrics());
    let reload = application.reload();
    hangup::on_signal(move || reload.now(now()))?;
    tracing::info!(address = %application.address(), tls = settings.api.certificate_file.is_some(), "the scheduler hook listens");
    let following = {
        let (db, stop) = (db.clone(), stop.clone());
        tokio::spawn(async move { clock.keep(&db, &stop).await })
    };
    let served = application
        .run(stop)
        .await
        .map_err(|error| api::fault(NAME, error));
    following.abort();
    db.close().await;
    served
}

/// A scheduler asks for every server that is built, so its requests are not limited.
fn limits(settings: &Settings) -> RateLimits {
    RateLimits {
        requests_per_second: 0,
        ..identity::limits(&settings.api)
    }
}
