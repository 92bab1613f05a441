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
    /// The keys that sign messages; see [`read_keys`](super::read_keys).
    pub keys_file: Option<PathBuf>,
    /// PEM certificates that may have signed the broker's; needed for `amqps`.
    pub ca_file: Option<PathBuf>,
    /// The prefix of the names of all queues.
    pub prefix: String,
}

/// `[api]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiSettings {
    /// Where the API listens.
    pub listen: SocketAddr,
    /// The static tokens.
    pub tokens_file: Option<PathBuf>,
    /// The longest body of a request, 1 KiB to 16 MiB.
    pub max_body_bytes: usize,
    /// The API's certificate with its intermediate certificates, in PEM; if it is not set, the API speaks plain HTTP.
    pub certificate_file: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    pub key_file: Option<PathBuf>,
    /// Requests of one caller per second in the long run; 0: no limit.
    pub requests_per_second: u32,
    /// Requests of one caller at once, after a pause.
    pub request_burst: u32,
    /// Event streams of all callers; no more than half of the files that the process may have open.
    pub streams: u32,
    /// Event streams of one caller.
    pub streams_per_caller: u32,
    /// Invalid tokens from one address per minute; 0: no limit.
    pub failed_authentications_per_minute: u32,
}

/// `[keystone]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneSettings {
    /// The URL of Keystone, with or without `/v3`.
    pub url: Option<String>,
    /// Ringfence's own user.
    pub user: String,
    /// The name of the user's domain.
    pub user_domain: String,
    /// The reference to the user's password.
    pub password: Option<SecretReference>,
    /// The project that the user logs in to.
    pub project: String,
    /// The name of the project's domain.
    pub project_domain: String,
    /// The scopes of the tokens that are accepted; see [`ringfence_api::Scope`].
    pub scopes: Option<Vec<String>>,
    /// Roles of Keystone that map to `reader`.
    pub reader_roles: Vec<String>,
    /// Roles of Keystone that map to `service`.
    pub service_roles: Vec<String>,
    /// Roles of Keystone that map to `operator`.
    pub operator_roles: Vec<String>,
    /// Roles of Keystone that map to `admin`.
    pub admin_roles: Vec<String>,
    /// PEM certificates that may have signed Keystone's.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take, 100 to 60000.
    pub timeout_ms: u64,
}

/// `[engine]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSettings {
    /// The engine's name in logs and the audit trail.
    pub name: String,
    /// Milliseconds between two looks for hosts with an overdue timer, 10 to 60000.
    pub tick_ms: u64,
    /// Milliseconds between two looks for messages that were committed and not published, 10 to 60000.
    pub sweep_ms: u64,
    /// Unsettled claims and results taken from the bus at once, 1 to 1000.
    pub prefetch: u16,
}

/// `[checks]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSettings {
    /// Seconds between two checks of one device, 10 to 86400; 0: no checks.
    pub interval_s: u64,
    /// How many devices one engine asks at a time, 1 to 256.
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
    /// The positions of event sinks that no engine serves any more, and the events that wait for them.
    pub event_sinks_days: u32,
    /// The folder into which rows are written before they are removed; if it is not set, they are not written.
    pub archive_dir: Option<PathBuf>,
}

/// `[webhooks]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSettings {
    /// The keys from which the secrets of subscriptions are derived; without them there are no subscriptions.
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
    /// Distinguishes this Ringfence from others in the `source` of its events.
    pub source: String,
    /// Whether engines send every event to the topic exchange of the bus's broker.
    pub exchange: bool,
}

/// `[oslo]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OsloSettings {
    /// The broker of OpenStack's notifications; if it is not set, none are sent.
    pub url: Option<SecretUrl>,
    /// PEM certificates that may have signed the broker's, beside those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// The exchange: `control_exchange` of the listeners.
    pub exchange: String,
    /// The topic; the routing key is the topic and the priority.
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
    /// The `clouds.yaml`; if it is not set, it is looked for where OpenStack's own clients look.
    pub clouds_file: Option<PathBuf>,
    /// `CLOUD:SEGMENT`: clouds whose new hosts are added automatically, and the segments of these hosts.
    #[serde(default)]
    pub adopt: Vec<String>,
    /// Milliseconds that one call to a cloud may take, 100 to 60000.
    pub timeout_ms: u64,
    /// Seconds between two reads of a cloud's hosts, 1 to 300.
    pub poll_s: u64,
    /// Seconds without a sign of life after which a host counts as UNREACHABLE, 5 to 3600.
    pub down_after_s: u64,
}

/// `[kubernetes]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesSettings {
    /// The clusters that hosts of the backend kubernetes belong to. Each is a context of the kubeconfig; without a kubeconfig it is the
    /// one that this process runs in.
    #[serde(default)]
    pub clusters: Vec<String>,
    /// The kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// `CLUSTER:CONTEXT`: clusters whose context has another name.
    #[serde(default)]
    pub contexts: Vec<String>,
    /// The namespace of Ringfence's own objects.
    pub namespace: String,
    /// The name of the gate object, a ConfigMap in that namespace.
    pub gate: String,
    /// `CLUSTER:SEGMENT`: clusters whose new nodes are added automatically, and the segments of these hosts.
    #[serde(default)]
    pub adopt: Vec<String>,
    /// Seconds that a node which was added automatically has to be away from its cluster before it is removed, 60 to 2592000; 0: never.
    pub remove_after_s: u64,
    /// The CSI drivers of the storage from which storage fencing cuts nodes off.
    #[serde(default)]
    pub fenced_storage: Vec<String>,
    /// The label of pods that are moved only when all their volumes are healthy, `KEY=VALUE`, or `none`.
    pub fenced_label: String,
    /// Seconds between two looks at a volume that is not healthy, 1 to 300.
    pub volume_poll_s: u64,
    /// The Secret in the namespace of Ringfence's own objects that says how StorageOS is reached.
    pub storageos_secret: String,
    /// The namespace of Longhorn.
    pub longhorn_namespace: String,
    /// The cluster whose `NodeFence` objects are the records of its hosts: the database is a cache of them then.
    pub records: Option<String>,
    /// The clusters whose objects, such as `NodeFence`, are served.
    #[serde(default)]
    pub operator: Vec<String>,
    /// Milliseconds that one call to an API server may take, 100 to 60000.
    pub timeout_ms: u64,
    /// Seconds between two looks at all nodes of a cluster, 1 to 300. A change is looked at as soon as it comes.
    pub poll_s: u64,
    /// Seconds without a renewal of its lease after which a node counts as UNREACHABLE, 5 to 3600.
    pub down_after_s: u64,
    /// Seconds for which a node that has returned has to be Ready before it takes pods, 0 to 3600.
    pub ready_for_s: u64,
}

/// `[scheduler_hook]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerHookSettings {
    /// Where the scheduler hook listens.
    pub listen: SocketAddr,
    /// The answer about a host that Ringfence does not know.
    pub unknown_hosts: UnknownHostsWord,
    /// Milliseconds between two reads of the hosts without a request, 100 to 10000.
    pub refresh_ms: u64,
    /// The greatest age of a read, 500 to 60000 milliseconds, and at least twice `refresh_ms`.
    pub max_age_ms: u64,
}

/// The answer about a host that Ringfence does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownHostsWord {
    /// The host gets no workloads.
    Refused,
    /// The host is not Ringfence's concern.
    Allowed,
}

/// `[worker]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSettings {
    /// The worker's name, unique among the workers.
    pub name: String,
    /// The zones that the worker reaches, at least one.
    pub zones: Vec<String>,
    /// What the worker acts on, at least one.
    pub resources: Vec<Resource>,
    /// Attempts at a time, 1 to 1024.
    pub concurrency: usize,
    /// The folder of the fence agents.
    pub agents_dir: PathBuf,
    /// The program `ipmitool`.
    pub ipmitool: PathBuf,
    /// The program `ceph`.
    pub ceph: PathBuf,
    /// Where it listens for kdump messages; if it is not set, it does not.
    pub kdump_listen: Option<SocketAddr>,
    /// The base URL of the simulators, if there are any.
    pub simulator_url: Option<Url>,
}

/// `[metrics]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Where the services `engine` and `worker` serve `/metrics`; if it is not set, they do not.
    pub listen: Option<SocketAddr>,
    /// Whether the API's `/metrics` needs no token.
    pub public: bool,
}

/// `[traces]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSettings {
    /// The base URL of a collector that takes OTLP over HTTP; if it is not set, no spans are sent.
    pub otlp_endpoint: Option<SecretUrl>,
    /// The headers that the collector wants, one `name: value` per line.
    pub headers_file: Option<PathBuf>,
    /// PEM certificates that may have signed the collector's, beside those that the system trusts.
    pub ca_file: Option<PathBuf>,
    /// The name of the service in the spans.
    pub service_name: String,
    /// How many traces of a hundred are sent, 1 to 100.
    pub sample_percent: u8,
    /// Milliseconds that the collector may take for one batch, retries included, 100 to 60000.
    pub timeout_ms: u64,
    /// How many spans may wait to be sent, 64 to 65536; more are dropped.
    pub queue_spans: usize,
}

/// `[log]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Text or JSON.
    pub format: LogFormat,
    /// A level, and others for single targets: `info,sqlx=warn`.
    pub level: String,
}

/// The format of log lines.
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
    /// The folder of the database, `api.json` and `admin.token`.
    pub data_dir: Option<PathBuf>,
    /// Where standalone listens: on this machine only, unless the API has a certificate.
    pub listen: SocketAddr,
}
