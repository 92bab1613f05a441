//! The settings in the form that services use.

use std::path::Path;
use std::time::Duration;

use ringfence_api::TlsFiles;
use serde::Deserialize;

use super::secret_url::SecretUrl;
use super::sections::{
    ApiSettings, BusSettings, CheckSettings, DatabaseSettings, EngineSettings, EventSettings,
    KeystoneSettings, KubernetesSettings, LogSettings, MetricsSettings, OpenStackSettings, OsloSettings,
    RetentionSettings, SchedulerHookSettings, StandaloneSettings, TraceSettings, WebhookSettings,
    WorkerSettings,
};
use crate::error::CliError;

/// Everything that can be configured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The database.
    pub database: DatabaseSettings,
    /// The bus.
    pub bus: BusSettings,
    /// The service `api`.
    pub api: ApiSettings,
    /// Keystone, if the API takes its tokens.
    pub keystone: KeystoneSettings,
    /// The service `engine`.
    pub engine: EngineSettings,
    /// Health checks of methods.
    pub checks: CheckSettings,
    /// How long records are kept.
    pub retention: RetentionSettings,
    /// Webhooks.
    pub webhooks: WebhookSettings,
    /// Events for other systems.
    pub events: EventSettings,
    /// Notifications in the form of oslo.messaging.
    pub oslo: OsloSettings,
    /// The clouds that hosts belong to.
    pub openstack: OpenStackSettings,
    /// The clusters that hosts belong to.
    pub kubernetes: KubernetesSettings,
    /// The service `scheduler-hook`.
    pub scheduler_hook: SchedulerHookSettings,
    /// The service `worker`.
    pub worker: WorkerSettings,
    /// The metrics for Prometheus.
    pub metrics: MetricsSettings,
    /// Traces, of all services.
    pub traces: TraceSettings,
    /// Logging, of all services.
    pub log: LogSettings,
    /// The service `standalone`.
    pub standalone: StandaloneSettings,
}

impl Settings {
    /// The database's URL. Only standalone and the worker do not need one.
    pub fn database_url(&self) -> Result<&SecretUrl, CliError> {
        needed(
            self.database.url.as_ref(),
            "database.url",
            "RINGFENCE_DATABASE_URL",
        )
    }

    /// The broker's URL. Only standalone does not need one.
    pub fn bus_url(&self) -> Result<&SecretUrl, CliError> {
        needed(self.bus.url.as_ref(), "bus.url", "RINGFENCE_BUS_URL")
    }

    /// The file of the signing keys. Only standalone does not need one.
    pub fn keys_file(&self) -> Result<&Path, CliError> {
        needed(
            self.bus.keys_file.as_deref(),
            "bus.keys_file",
            "RINGFENCE_BUS_KEYS_FILE",
        )
    }

    /// The file of the static tokens.
    pub fn tokens_file(&self) -> Result<&Path, CliError> {
        needed(
            self.api.tokens_file.as_deref(),
            "api.tokens_file",
            "RINGFENCE_API_TOKENS_FILE",
        )
    }

    /// Certificate and key of the API; one without the other is an error.
    pub fn api_tls(&self) -> Result<Option<TlsFiles>, CliError> {
        let (missing, other) = match (&self.api.certificate_file, &self.api.key_file) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => {
                return Ok(Some(TlsFiles {
                    certificate: certificate.clone(),
                    key: key.clone(),
                }));
            }
            (None, Some(_)) => ("api.certificate_file", "api.key_file"),
            (Some(_), None) => ("api.key_file", "api.certificate_file"),
        };
        Err(CliError::config(format!(
            "{missing} is not set; {other} is, and the two are needed together"
        )))
    }

    /// Where standalone listens, and its certificate and key, which are those of the API. What goes over the network is encrypted.
    pub fn standalone_tls(&self) -> Result<Option<TlsFiles>, CliError> {
        let (listen, tls) = (self.standalone.listen, self.api_tls()?);
        if tls.is_none() && !listen.ip().is_loopback() {
            return Err(CliError::config(format!(
                "standalone.listen is {listen}, which is not on this machine alone; without api.certificate_file and api.key_file a \
                 loopback address is allowed, as 127.0.0.1:PORT or [::1]:PORT"
            )));
        }
        Ok(tls)
    }

    /// The interval between two reads, and the greatest age of a read. One late read must not close every gate.
    pub fn hook_ages(&self) -> Result<(Duration, Duration), CliError> {
        let own = &self.scheduler_hook;
        let least = own.refresh_ms * 2;
        if own.max_age_ms < least {
            return Err(CliError::config(format!(
                "scheduler_hook.max_age_ms is {}; at least twice scheduler_hook.refresh_ms, {least}, is allowed",
                own.max_age_ms
            )));
        }
        let ms = Duration::from_millis;
        Ok((ms(own.refresh_ms), ms(own.max_age_ms)))
    }

    /// The data directory of standalone.
    pub fn data_dir(&self) -> Result<&Path, CliError> {
        needed(
            self.standalone.data_dir.as_deref(),
            "standalone.data_dir",
            "--data-dir, RINGFENCE_DATA_DIR or HOME",
        )
    }
}

fn needed<'a, T: ?Sized>(value: Option<&'a T>, key: &str, variable: &str) -> Result<&'a T, CliError> {
    value.ok_or_else(|| CliError::config(format!("{key} is not set; set it in the file or by {variable}")))
}
