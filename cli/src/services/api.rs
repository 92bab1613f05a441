//! `ringfence api`.

use std::net::SocketAddr;
use std::time::Duration;

use ringfence_api::{ApiConfig, Application, ServerTls, StartError, TlsFiles};
use ringfence_engine::Engine;
use tokio_util::sync::CancellationToken;

use super::{hangup, identity, listen, parts, stop};
use crate::clock::now;
use crate::config::Settings;
use crate::error::CliError;
use crate::platforms;
use crate::traces;

/// Threads that serve requests.
const THREADS: usize = 2;

/// Between two checks whether the token of an open stream is still valid.
const RECHECK_EVERY: Duration = Duration::from_secs(30);

/// Runs until the process is told to stop.
pub async fn run(settings: Settings) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    platforms::refuse_records("api", &settings)?;
    listen::check("api.listen", settings.api.listen)?;
    let tokens = identity::tokens(&settings)?;
    let config = config("api", &settings, settings.api.listen)?;
    let keys = parts::keys(&settings)?;
    let bus = parts::broker("api", &settings.engine.name, &settings)?;
    let Some(db) = parts::database("api", &settings, &stop).await? else {
        return Ok(());
    };
    let engine = parts::engine("api", &settings, db, bus, keys, None).await?;
    let mut application =
        Application::build(config, engine.clone(), tokens).map_err(|error| fault("api", error))?;
    traces::register_metrics(application.metrics());
    let reload = application.reload();
    hangup::on_signal(move || reload.now(now()))?;
    tracing::info!(address = %application.address(), tls = settings.api.certificate_file.is_some(), "the API listens");
    serve(application, engine, stop).await
}

/// Serves requests, and publishes the messages of their decisions.
async fn serve(application: Application, engine: Engine, stop: CancellationToken) -> Result<(), CliError> {
    let writer = engine.start_writer();
    let served = application.run(stop).await.map_err(|error| fault("api", error));
    writer.stop().await;
    served
}

/// What an API goes by, and what the scheduler hook has of it.
pub fn config(service: &'static str, settings: &Settings, listen: SocketAddr) -> Result<ApiConfig, CliError> {
    Ok(ApiConfig {
        tls: tls(service, settings.api_tls()?)?,
        keystone: identity::keystone(&settings.keystone)?,
        ..without_tls(settings, listen)
    })
}

/// Certificate and key, if the API has them.
pub fn tls(service: &'static str, files: Option<TlsFiles>) -> Result<Option<ServerTls>, CliError> {
    let tls = files.map(|files| ServerTls::open(files, now())).transpose();
    tls.map_err(|error| fault(service, error))
}

/// What an API in plain HTTP and without a Keystone goes by.
pub fn without_tls(settings: &Settings, listen: SocketAddr) -> ApiConfig {
    ApiConfig {
        listen,
        max_body_bytes: settings.api.max_body_bytes,
        threads: THREADS,
        are_metrics_public: settings.metrics.public,
        tls: None,
        keystone: None,
        limits: identity::limits(&settings.api),
        streams: identity::streams(&settings.api),
        recheck_every: RECHECK_EVERY,
    }
}

pub fn fault(service: &'static str, error: StartError) -> CliError {
    CliError::service(service, "cannot serve", error)
}
