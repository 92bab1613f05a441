//! The parts of services, made from the settings.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_backends::Records;
use ringfence_bus::{AmqpBus, AmqpConfig, AmqpExchange, Bus, ExchangeConfig, Keys};
use ringfence_db::{Database, schema_state};
use ringfence_engine::{
    CheckConfig, Clock, ClockSource, Engine, EngineConfig, EventSink, Parts, RetentionConfig, SinkForm,
    WebhookConfig,
};
use ringfence_scheduler_hook::{Confirmation, Hook, HookConfig, UnknownHosts};
use ringfence_workers::{DriverSettings, Drivers, Worker, WorkerConfig, WorkerHandle};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::clock::now;
use crate::config::{Settings, UnknownHostsWord, read_keys, read_webhook_keys};
use crate::error::CliError;
use crate::platforms;

/// Between two tries to reach a database that is away.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Opens the database and waits for it, and logs its address while it is away. A schema of another build ends the service.
pub async fn database(
    service: &'static str,
    settings: &Settings,
    stop: &CancellationToken,
) -> Result<Option<Database>, CliError> {
    let url = settings.database_url()?;
    let own = &settings.database;
    let bound = Duration::from_secs(own.statement_timeout_s);
    let db = Database::open_within(url.expose(), own.connections, bound)
        .await
        .map_err(|e| CliError::service(service, "cannot use the database", e))?;
    loop {
        match schema_state(&db).await {
            Ok(state) => {
                state
                    .require_current(db.address())
                    .map_err(|e| CliError::service(service, "cannot use the database's schema", e))?;
                return Ok(Some(db));
            }
            Err(error) if error.is_passing() => {
                tracing::warn!(
                    address = db.address(),
                    error = &error as &dyn std::error::Error,
                    "the database is away; trying again every {} s",
                    LOOK_AGAIN_AFTER.as_secs()
                );
            }
            Err(error) => {
                return Err(CliError::service(
                    service,
                    "cannot read the database's schema",
                    error,
                ));
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = tokio::time::sleep(LOOK_AGAIN_AFTER) => {}
        }
    }
}

/// The broker, which may start later: the service starts, and keeps trying to connect.
pub fn broker(service: &'static str, name: &str, settings: &Settings) -> Result<Arc<dyn Bus>, CliError> {
    let config = broker_config(service, name, settings)?;
    tracing::info!(broker = config.address(), "connecting");
    Ok(Arc::new(AmqpBus::connect_when_there(config)))
}

/// The broker's address; `name` is shown in the broker's list of connections.
pub fn broker_config(service: &'static str, name: &str, settings: &Settings) -> Result<AmqpConfig, CliError> {
    let fault = |e| CliError::service(service, "cannot use the broker's address", e);
    let client = format!("ringfence {service} {name}");
    let config = AmqpConfig::new(settings.bus_url()?.expose(), client)
        .map_err(fault)?
        .with_prefix(&settings.bus.prefix);
    trusting(config, settings.bus.ca_file.as_deref())
}

fn trusting(config: AmqpConfig, ca_file: Option<&Path>) -> Result<AmqpConfig, CliError> {
    let Some(path) = ca_file else { return Ok(config) };
    let pem = std::fs::read_to_string(path)
        .map_err(|e| CliError::file("read the broker's certificate authority", path, e))?;
    Ok(config.with_ca_pem(pem))
}

/// The topic exchange of the bus's broker.
pub fn event_exchange(service: &'static str, settings: &Settings) -> Result<Option<EventSink>, CliError> {
    if !settings.events.exchange {
        return Ok(None);
    }
    let broker = broker_config(service, &settings.engine.name, settings)?;
    let config = ExchangeConfig {
        name: format!("{}.events", settings.bus.prefix),
        is_ours: true,
        durable: true,
        queue: None,
    };
    Ok(Some(EventSink {
        name: "exchange",
        form: SinkForm::CloudEvents,
        announcer: Arc::new(AmqpExchange::connect_when_there(broker, config)),
    }))
}

/// Notifications in the form of oslo.messaging, on a broker of OpenStack's.
pub fn oslo(service: &'static str, settings: &Settings) -> Result<Option<EventSink>, CliError> {
    let own = &settings.oslo;
    let Some(url) = &own.url else { return Ok(None) };
    let client = format!("ringfence {service} {} notifications", settings.engine.name);
    let broker = AmqpConfig::new(url.expose(), client)
        .map_err(|e| CliError::service(service, "cannot use the address in oslo.url", e))?
        .with_setting("oslo.url");
    let broker = trusting(broker, own.ca_file.as_deref())?;
    let config = ExchangeConfig {
        name: own.exchange.clone(),
        is_ours: false,
        durable: own.durable,
        queue: Some(format!("{}.info", own.topic)),
    };
    Ok(Some(EventSink {
        name: "oslo",
        form: SinkForm::Oslo {
            topic: own.topic.clone(),
            publisher_id: format!("ringfence.{}", settings.events.source),
        },
        announcer: Arc::new(AmqpExchange::connect_when_there(broker, config)),
    }))
}

/// The signing keys.
pub fn keys(settings: &Settings) -> Result<Keys, CliError> {
    read_keys(settings.keys_file()?)
}

/// How webhooks are called.
fn webhooks(settings: &Settings) -> Result<WebhookConfig, CliError> {
    let own = &settings.webhooks;
    let ca_pem = own.ca_file.as_ref().map(|path| {
        std::fs::read_to_string(path)
            .map_err(|e| CliError::file("read the certificate authority of webhooks", path, e))
    });
    Ok(WebhookConfig {
        keys: own.keys_file.as_deref().map(read_webhook_keys).transpose()?,
        allowed_networks: own.allowed_networks.clone(),
        ca_pem: ca_pem.transpose()?,
        source: Some(format!("/ringfence/{}", settings.events.source)),
    })
}

/// How long records are kept; 0 days mean for ever.
fn retention(settings: &Settings) -> RetentionConfig {
    let own = &settings.retention;
    let days = |days: u32| Some(TimeDelta::days(i64::from(days))).filter(|kept| !kept.is_zero());
    RetentionConfig {
        events: days(own.events_days),
        operations: days(own.operations_days),
        audit: days(own.audit_days),
        deliveries: days(own.deliveries_days),
        event_sinks: days(own.event_sinks_days),
        archive_dir: own.archive_dir.clone(),
        ..RetentionConfig::default()
    }
}

/// An engine.
pub async fn engine(
    service: &'static str,
    settings: &Settings,
    db: Database,
    bus: Arc<dyn Bus>,
    keys: Keys,
    records: Option<Arc<dyn Records>>,
) -> Result<Engine, CliError> {
    let config = EngineConfig {
        name: settings.engine.name.clone(),
        tick_every: Duration::from_millis(settings.engine.tick_ms),
        sweep_every: Duration::from_millis(settings.engine.sweep_ms),
        prefetch: settings.engine.prefetch,
        webhooks: webhooks(settings)?,
        checks: CheckConfig {
            every: Some(Duration::from_secs(settings.checks.interval_s)).filter(|every| !every.is_zero()),
            at_once: settings.checks.at_once,
        },
        retention: retention(settings),
        platforms: platforms::watched(settings)?,
        records,
    };
    let parts = Parts {
        db,
        bus,
        keys,
        clock: ClockSource::Database,
        drivers: ringfence_workers::catalogue(),
    };
    let fault = |e| CliError::service(service, "cannot start", e);
    let engine = Engine::new(parts, config).await.map_err(fault)?;
    engine.ensure_default_segment().await.map_err(fault)?;
    Ok(engine)
}

/// A scheduler hook, with the clock of the process.
pub fn hook(
    settings: &Settings,
    db: Database,
    clock: &Clock,
    confirmation: Confirmation,
) -> Result<Hook, CliError> {
    let (refresh_every, max_age) = settings.hook_ages()?;
    let config = HookConfig {
        clouds: settings.openstack.clouds.clone(),
        clusters: settings.kubernetes.clusters.clone(),
        unknown_hosts: match settings.scheduler_hook.unknown_hosts {
            UnknownHostsWord::Refused => UnknownHosts::Refused,
            UnknownHostsWord::Allowed => UnknownHosts::Allowed,
        },
        lookup: platforms::lookup(settings)?,
        confirmation,
        refresh_every,
        max_age,
    };
    let clock = clock.clone();
    Ok(Hook::new(db, Arc::new(move || clock.now()), config))
}

/// A running worker.
pub fn worker(
    settings: &Settings,
    bus: Arc<dyn Bus>,
    keys: Keys,
    simulator: Option<Url>,
) -> Result<WorkerHandle, CliError> {
    let config = WorkerConfig {
        name: settings.worker.name.clone(),
        zones: settings.worker.zones.clone(),
        resources: settings.worker.resources.clone(),
        concurrency: settings.worker.concurrency,
        kdump_listen: settings.worker.kdump_listen,
    };
    let own = DriverSettings {
        clock: Arc::new(now),
        agent_path: vec![settings.worker.agents_dir.clone()],
        ipmitool: settings.worker.ipmitool.clone(),
        ceph: settings.worker.ceph.clone(),
        simulator,
        clouds: platforms::clouds(settings)?,
        clusters: platforms::clusters(settings)?,
    };
    let platforms = platforms::with(&own.clouds, &own.clusters)?;
    let drivers = Drivers::new(&own).with_platforms(&platforms, &own.clock);
    Worker::start(config, bus, keys, drivers, Arc::new(Uuid::new_v4))
        .map_err(|e| CliError::service("worker", "cannot start", e))
}
