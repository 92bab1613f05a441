//! The sections of the settings, in the order of the documentation.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use ringfence_core::{Resource, SecretReference};
use serde::Deserialize;
use url::Url;

use super::secret_url::SecretUrl;

/// `[database]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/name` or `sqlite:///path`.
    pub url: Option<SecretUrl>,
    /// The most connections, 1 to 1000.
    pub connections: u32,
    /// Seconds that one statement of PostgreSQL may take, 1 to 3600.
    pub statement_timeout_s: u64,
}

/// `[bus]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSettings {
    /// `amqp[s]://user:password@host:port/vhost`.
    pub url: Option<SecretUrl>,
    /// The keys that messages are signed with; see [`read_keys`](super::read_keys).
    pub keys_file: Option<PathBuf>,
    /// PEM certificates that may have signed the broker's; `amqps` needs them.
    pub ca_file: Option<PathBuf>,
    /// What the names of all queues begin with.
    pub prefix: String,
}

/// `[api]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiSettings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The static tokens.
    pub tokens_file: Option<PathBuf>,
    /// The longest body of a request, 1 KiB to 16 MiB.
    pub max_body_bytes: usize,
    /// Its certificate with what stands between it and the authority, in PEM; without it the API speaks plain HTTP.
    pub certificate_file: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    pub key_file: Option<PathBuf>,
    /// Requests of one caller in the long run; 0: as many as it likes.
    pub requests_per_second: u32,
    /// Requests of one caller at once, after a pause.
    pub request_burst: u32,
    /// Event streams of all callers; no more than half of the files that the process may have open.
    pub streams: u32,
    /// Event streams of one caller.
    pub streams_per_caller: u32,
    /// Tokens from one address that do not work; 0: as many as it likes.
    pub failed_authentications_per_minute: u32,
}

/// `[keystone]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneSettings {
    /// Where it is, with or without `/v3`.
    pub url: Option<String>,
    /// Our own user.
    pub user: String,
    /// The name of the user's domain.
    pub user_domain: String,
    /// Where the user's password is.
    pub password: Option<SecretReference>,
    /// The project that the user logs in to.
    pub project: String,
    /// The name of the project's domain.
    pub project_domain: String,
    /// What tokens have to be scoped to; see [`ringfence_api::Scope`].
    pub scopes: Option<Vec<String>>,
    /// Keystone's roles that mean `reader`.
    pub reader_roles: Vec<String>,
    /// Keystone's roles that mean `service`.
    pub service_roles: Vec<String>,
    /// Keystone's roles that mean `operator`.
    pub operator_roles: Vec<String>,
    /// Keystone's roles that mean `admin`.
    pub admin_roles: Vec<String>,
    /// PEM certificates that may have signed Keystone's.
    pub ca_file: Option<PathBuf>,
    /// How long one question may take, 100 to 60000.
    pub timeout_ms: u64,
}

/// `[engine]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSettings {
    /// Its name in logs and the audit trail.
    pub name: String,
    /// Between two looks for hosts that time has made due, 10 to 60000.
    pub tick_ms: u64,
    /// Between two looks for messages that were committed and not published, 10 to 60000.
    pub sweep_ms: u64,
    /// Unsettled claims and results taken from the bus at once, 1 to 1000.
    pub prefetch: u16,
}

/// `[checks]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSettings {
    /// Seconds between two checks of the same device, 10 to 86400; 0: none are made.
    pub interval_s: u64,
    /// Devices that one engine asks at the same time, 1 to 256.
    pub at_once: usize,
}

/// `[retention]`: days, 1 to 36500; 0: for ever.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionSettings {
    /// Events.
    pub events_days: u32,
    /// Operations that are over.
    pub operations_days: u32,
    /// The audit trail.
    pub audit_days: u32,
    /// The log of webhooks' deliveries.
    pub deliveries_days: u32,
    /// How far an event sink has got that nobody tells, and the events for it.
    pub event_sinks_days: u32,
    /// Where what is removed is written first; nowhere if it is not set.
    pub archive_dir: Option<PathBuf>,
}

/// `[webhooks]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// The keys that the secrets of subscriptions are derived from; without, there are no subscriptions.
    pub keys_file: Option<PathBuf>,
    /// Networks that may be called although they are not public.
    #[serde(default)]
    pub allowed_networks: Vec<IpNet>,
    /// PEM certificates that may have signed a receiver's, beside those that the system trusts.
    pub ca_file: Option<PathBuf>,
}

/// `[events]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSettings {
    /// Tells this Ringfence from others in the `source` of its events.
    pub source: String,
    /// Whether engines tell every event to the topic exchange of the bus's broker.
    pub exchange: bool,
}

/// `[oslo]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OsloSettings {
    /// The broker of OpenStack's notifications; without, none are sent.
    pub url: Option<SecretUrl>,
    /// PEM certificates that may have signed its, beside those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// The exchange: `control_exchange` of those who listen.
    pub exchange: String,
    /// The topic; the priority follows in the routing key.
    pub topic: String,
    /// Whether exchange and queue are durable where they have to be made.
    pub durable: bool,
}

/// `[openstack]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenStackSettings {
    /// Entries of a `clouds.yaml`: the clouds that hosts of the backend nova belong to.
    #[serde(default)]
    pub clouds: Vec<String>,
    /// The `clouds.yaml`; without, it is looked for where OpenStack's own clients look.
    pub clouds_file: Option<PathBuf>,
    /// `CLOUD:SEGMENT`: clouds whose new hosts are added by themselves, and where they go.
    #[serde(default)]
    pub adopt: Vec<String>,
    /// How long one call to a cloud may take, 100 to 60000.
    pub timeout_ms: u64,
    /// How often a cloud is asked how its hosts are, 1 to 300.
    pub poll_s: u64,
    /// After how long without a sign of life a host counts as UNREACHABLE, 5 to 3600.
    pub down_after_s: u64,
}

/// `[scheduler_hook]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerHookSettings {
    /// Where the service of that name listens.
    pub listen: SocketAddr,
    /// What is said of a host that Ringfence does not know.
    pub unknown_hosts: UnknownHostsWord,
    /// Between two reads of the hosts that nothing has asked for, 100 to 10000.
    pub refresh_ms: u64,
    /// How old what was read may be, 500 to 60000, and at least twice `refresh_ms`.
    pub max_age_ms: u64,
}

/// What is said of a host that Ringfence does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownHostsWord {
    /// It gets no workloads.
    Refused,
    /// It is none of Ringfence's.
    Allowed,
}

/// `[worker]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSettings {
    /// Its name, unique among the workers.
    pub name: String,
    /// The zones that it reaches, at least one.
    pub zones: Vec<String>,
    /// What it acts on, at least one.
    pub resources: Vec<Resource>,
    /// Attempts at a time, 1 to 1024.
    pub concurrency: usize,
    /// Where the fence agents are.
    pub agents_dir: PathBuf,
    /// The program `ipmitool`.
    pub ipmitool: PathBuf,
    /// The base URL of the simulators, where there are any.
    pub simulator_url: Option<Url>,
}

/// `[metrics]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Where the services `engine` and `worker` serve `/metrics`; nowhere if it is not set.
    pub listen: Option<SocketAddr>,
    /// Whether the API's `/metrics` needs no token.
    pub public: bool,
}

/// `[traces]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSettings {
    /// The base URL of a collector that takes OTLP over HTTP; without, no spans are sent.
    pub otlp_endpoint: Option<SecretUrl>,
    /// The headers that the collector wants, one `name: value` per line.
    pub headers_file: Option<PathBuf>,
    /// PEM certificates that may have signed the collector's, beside those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// What the collector knows the spans under.
    pub service_name: String,
    /// How many traces of a hundred are sent, 1 to 100.
    pub sample_percent: u8,
    /// How long the collector may take for one batch, tries included, 100 to 60000.
    pub timeout_ms: u64,
    /// Spans that wait to be sent, 64 to 65536; more are lost.
    pub queue_spans: usize,
}

/// `[log]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// For people or for programs.
    pub format: LogFormat,
    /// A level, and per target others: `info,sqlx=warn`.
    pub level: String,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// `[standalone]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandaloneSettings {
    /// Where it keeps the database, `api.json` and `admin.token`.
    pub data_dir: Option<PathBuf>,
    /// Where it listens, on this machine only.
    pub listen: SocketAddr,
}
