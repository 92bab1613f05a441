//! `ringfence scheduler-hook`.

use ringfence_api::{ApiConfig, Application, RateLimits, ServerTls};
use ringfence_engine::{Clock, ClockSource};

use super::api::RECHECK_EVERY;
use super::{hangup, identity, listen, parts, stop};
use crate::clock::now;
use crate::config::Settings;
use crate::error::CliError;
use crate::traces;

const NAME: &str = "scheduler-hook";
/// Threads that serve requests.
const THREADS: usize = 2;

/// Runs until the process is told to stop. The hook reads the database and writes nothing, and needs no broker.
pub async fn run(settings: Settings) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    listen::check("scheduler_hook.listen", settings.scheduler_hook.listen)?;
    let tokens = identity::tokens(&settings)?;
    let keystone = identity::keystone(&settings.keystone)?;
    let tls = settings.api_tls()?;
    let tls = tls.map(|files| ServerTls::open(files, now())).transpose();
    let config = ApiConfig {
        listen: settings.scheduler_hook.listen,
        max_body_bytes: settings.api.max_body_bytes,
        threads: THREADS,
        are_metrics_public: settings.metrics.public,
        tls: tls.map_err(fault)?,
        keystone,
        limits: limits(&settings),
        streams: identity::streams(&settings.api),
        recheck_every: RECHECK_EVERY,
    };
    settings.hook_ages()?;
    let Some(db) = parts::database(NAME, &settings, &stop).await? else {
        return Ok(());
    };
    let clock = Clock::start(ClockSource::Database, &db).await;
    let clock = clock.map_err(|error| CliError::service(NAME, "cannot read the database's clock", error))?;
    let hook = parts::hook(&settings, db.clone(), &clock)?;
    let mut application = Application::build_hook(config, hook, clock.clone(), tokens).map_err(fault)?;
    traces::register_metrics(application.metrics());
    let reload = application.reload();
    hangup::on_signal(move || reload.now(now()))?;
    tracing::info!(address = %application.address(), tls = settings.api.certificate_file.is_some(), "the scheduler hook listens");
    let following = {
        let (db, stop) = (db.clone(), stop.clone());
        tokio::spawn(async move { clock.keep(&db, &stop).await })
    };
    let served = application.run(stop).await.map_err(fault);
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

fn fault(error: ringfence_api::StartError) -> CliError {
    CliError::service(NAME, "cannot serve", error)
}
