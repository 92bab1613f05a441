//! All keys of the configuration.

use self::Default::Fixed;
use self::Kind::{Integer, OffOr};
use super::Environment;
use super::environment::{data_dir, host_name};

/// One key.
#[derive(Debug)]
pub struct Field {
    /// Section and key.
    pub key: &'static str,
    /// The values that are allowed.
    pub kind: Kind,
    /// The value if the key is not set.
    pub default: Default,
}

/// The values that a key allows.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A name, as for hosts and zones.
    Name,
    /// A name with at most so many characters.
    NameUpTo(usize),
    /// Several names.
    Names,
    /// Several zones, whose names are shorter.
    Zones,
    /// Several pairs of names, with a colon between.
    Pairs,
    /// A URL with one of these schemes; its password is never shown.
    Url(&'static [&'static str]),
    /// A path.
    Path,
    /// Up to 255 characters.
    Text,
    /// A reference to a secret, and not the secret.
    Secret,
    /// Scopes of Keystone's tokens.
    Scopes,
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// 0, which means never, or a whole number from the first to the second.
    OffOr(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words.
    Words(&'static [&'static str]),
    /// Networks: an address, `/`, and the number of leading bits.
    Networks,
    /// An IP address and port to listen on.
    Listen,
    /// A log level.
    LogLevel,
}

/// The source of a default.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// No default.
    None,
    /// A fixed value, written as in an environment variable.
    Fixed(&'static str),
    /// The name of this machine.
    HostName,
    /// The user's data directory.
    DataDir,
}

impl Default {
    /// The default on this machine, written as in an environment variable.
    #[must_use]
    pub fn text(self, environment: &Environment) -> Option<String> {
        match self {
            Self::None => None,
            Self::Fixed(text) => Some(text.to_owned()),
            Self::HostName => Some(host_name()),
            Self::DataDir => data_dir(environment).map(|path| path.display().to_string()),
        }
    }
}

impl Field {
    /// The environment variable of the key.
    #[must_use]
    pub fn variable(&self) -> String {
        match self.key {
            // The operator's commands read this variable too, and have no sections.
            "standalone.data_dir" => "RINGFENCE_DATA_DIR".to_owned(),
            key => format!("RINGFENCE_{}", key.replace('.', "_").to_uppercase()),
        }
    }

    /// The section of the key.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(section, _)| section)
    }
}

const fn field(key: &'static str, kind: Kind, default: Default) -> Field {
    Field { key, kind, default }
}

const MIB: u64 = 1024 * 1024;
const DATABASES: &[&str] = &["postgres", "postgresql", "sqlite"];
const BROKERS: &[&str] = &["amqp", "amqps"];
const RESOURCES: &[&str] = &["power", "storage", "network", "workloads", "query", "heartbeat"];

/// All keys.
pub const FIELDS: &[Field] = &[
    field("database.url", Kind::Url(DATABASES), Default::None),
    field("database.connections", Integer(1, 1000), Fixed("16")),
    field("database.statement_timeout_s", Integer(1, 3600), Fixed("30")),
    field("bus.url", Kind::Url(BROKERS), Default::None),
    field("bus.keys_file", Kind::Path, Default::None),
    field("bus.ca_file", Kind::Path, Default::None),
    field("bus.prefix", Kind::NameUpTo(64), Fixed("ringfence")),
    field("api.listen", Kind::Listen, Fixed("127.0.0.1:8790")),
    field("api.tokens_file", Kind::Path, Default::None),
    field("api.max_body_bytes", Integer(1024, 16 * MIB), Fixed("262144")),
    field("api.certificate_file", Kind::Path, Default::None),
    field("api.key_file", Kind::Path, Default::None),
    field("api.requests_per_second", Integer(0, 100_000), Fixed("200")),
    field("api.request_burst", Integer(1, 1_000_000), Fixed("1000")),
    field("api.streams", Integer(1, 100_000), Fixed("500")),
    field("api.streams_per_caller", Integer(1, 100_000), Fixed("50")),
    field(
        "api.failed_authentications_per_minute",
        Integer(0, 100_000),
        Fixed("60"),
    ),
    field("keystone.url", Kind::Url(&["http", "https"]), Default::None),
    field("keystone.user", Kind::Text, Fixed("ringfence")),
    field("keystone.user_domain", Kind::Text, Fixed("Default")),
    field("keystone.password", Kind::Secret, Default::None),
    field("keystone.project", Kind::Text, Fixed("service")),
    field("keystone.project_domain", Kind::Text, Fixed("Default")),
    field("keystone.scopes", Kind::Scopes, Default::None),
    field("keystone.reader_roles", Kind::Names, Fixed("reader")),
    field("keystone.service_roles", Kind::Names, Fixed("service")),
    field("keystone.operator_roles", Kind::Names, Fixed("manager,member")),
    field("keystone.admin_roles", Kind::Names, Fixed("admin")),
    field("keystone.ca_file", Kind::Path, Default::None),
    field("keystone.timeout_ms", Integer(100, 60_000), Fixed("5000")),
    field("engine.name", Kind::Name, Default::HostName),
    field("engine.tick_ms", Integer(10, 60_000), Fixed("200")),
    field("engine.sweep_ms", Integer(10, 60_000), Fixed("500")),
    field("engine.prefetch", Integer(1, 1000), Fixed("64")),
    field("checks.interval_s", OffOr(10, 86_400), Fixed("300")),
    field("checks.at_once", Integer(1, 256), Fixed("16")),
    field("retention.events_days", OffOr(1, 36_500), Fixed("90")),
    field("retention.operations_days", OffOr(1, 36_500), Fixed("90")),
    field("retention.audit_days", OffOr(1, 36_500), Fixed("400")),
    field("retention.deliveries_days", OffOr(1, 36_500), Fixed("7")),
    field("retention.event_sinks_days", OffOr(1, 36_500), Fixed("7")),
    field("retention.archive_dir", Kind::Path, Default::None),
    field("webhooks.keys_file", Kind::Path, Default::None),
    field("webhooks.allowed_networks", Kind::Networks, Default::None),
    field("webhooks.ca_file", Kind::Path, Default::None),
    field("events.source", Kind::Name, Fixed("default")),
    field("events.exchange", Kind::Flag, Fixed("true")),
    field("oslo.url", Kind::Url(BROKERS), Default::None),
    field("oslo.ca_file", Kind::Path, Default::None),
    field("oslo.exchange", Kind::Name, Fixed("openstack")),
    field(
        "oslo.topic",
        // The priority is appended, and AMQP has 255 bytes for the whole.
        Kind::NameUpTo(200),
        Fixed("versioned_notifications"),
    ),
    field("oslo.durable", Kind::Flag, Fixed("false")),
    field("openstack.clouds", Kind::Names, Default::None),
    field("openstack.clouds_file", Kind::Path, Default::None),
    field("openstack.adopt", Kind::Pairs, Default::None),
    field("openstack.timeout_ms", Integer(100, 60_000), Fixed("20000")),
    field("openstack.poll_s", Integer(1, 300), Fixed("5")),
    field("openstack.down_after_s", Integer(5, 3600), Fixed("60")),
    field("kubernetes.clusters", Kind::Names, Default::None),
    field("kubernetes.kubeconfig", Kind::Path, Default::None),
    field("kubernetes.contexts", Kind::Pairs, Default::None),
    field("kubernetes.namespace", Kind::NameUpTo(63), Fixed("ringfence")),
    field("kubernetes.gate", Kind::NameUpTo(253), Fixed("ringfence-gate")),
    field("kubernetes.adopt", Kind::Pairs, Default::None),
    field("kubernetes.remove_after_s", OffOr(60, 2_592_000), Fixed("3600")),
    field("kubernetes.fenced_storage", Kind::Names, Default::None),
    field(
        "kubernetes.fenced_label",
        Kind::Text,
        Fixed("storageos.com/fenced=true"),
    ),
    field("kubernetes.volume_poll_s", Integer(1, 300), Fixed("5")),
    field(
        "kubernetes.storageos_secret",
        Kind::NameUpTo(253),
        Fixed("storageos"),
    ),
    field(
        "kubernetes.longhorn_namespace",
        Kind::NameUpTo(63),
        Fixed("longhorn-system"),
    ),
    field("kubernetes.records", Kind::Name, Default::None),
    field("kubernetes.operator", Kind::Names, Default::None),
    field("kubernetes.timeout_ms", Integer(100, 60_000), Fixed("10000")),
    field("kubernetes.poll_s", Integer(1, 300), Fixed("5")),
    field("kubernetes.down_after_s", Integer(5, 3600), Fixed("20")),
    field("kubernetes.ready_for_s", Integer(0, 240), Fixed("10")),
    field("scheduler_hook.listen", Kind::Listen, Fixed("127.0.0.1:8791")),
    field(
        "scheduler_hook.unknown_hosts",
        Kind::Word(&["refused", "allowed"]),
        Fixed("refused"),
    ),
    field("scheduler_hook.refresh_ms", Integer(100, 10_000), Fixed("1000")),
    field("scheduler_hook.max_age_ms", Integer(500, 60_000), Fixed("5000")),
    field("worker.name", Kind::Name, Default::HostName),
    field("worker.zones", Kind::Zones, Fixed(ringfence_core::DEFAULT_ZONE)),
    field(
        "worker.resources",
        Kind::Words(RESOURCES),
        Fixed("power,storage,network,workloads,query,heartbeat"),
    ),
    field("worker.concurrency", Integer(1, 1024), Fixed("64")),
    field("worker.agents_dir", Kind::Path, Fixed("/usr/sbin")),
    field("worker.ipmitool", Kind::Path, Fixed("/usr/bin/ipmitool")),
    field("worker.ceph", Kind::Path, Fixed("/usr/bin/ceph")),
    field("worker.kdump_listen", Kind::Listen, Default::None),
    field("worker.simulator_url", Kind::Url(&["http"]), Default::None),
    field("metrics.listen", Kind::Listen, Default::None),
    field("metrics.public", Kind::Flag, Fixed("false")),
    field(
        "traces.otlp_endpoint",
        Kind::Url(&["http", "https"]),
        Default::None,
    ),
    field("traces.headers_file", Kind::Path, Default::None),
    field("traces.ca_file", Kind::Path, Default::None),
    field("traces.service_name", Kind::Name, Fixed("ringfence")),
    field("traces.sample_percent", Integer(1, 100), Fixed("100")),
    field("traces.timeout_ms", Integer(100, 60_000), Fixed("5000")),
    field("traces.queue_spans", Integer(64, 65_536), Fixed("4096")),
    field("log.format", Kind::Word(&["text", "json"]), Fixed("text")),
    field("log.level", Kind::LogLevel, Fixed("info")),
    field("standalone.data_dir", Kind::Path, Default::DataDir),
    field("standalone.listen", Kind::Listen, Fixed("127.0.0.1:8790")),
];

/// The field of this key.
#[must_use]
pub fn find(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_variable_of_its_own() {
        let mut variables: Vec<String> = FIELDS.iter().map(Field::variable).collect();
        variables.sort();
        variables.dedup();
        assert_eq!(variables.len(), FIELDS.len());
        assert_eq!(
            find("bus.keys_file").unwrap().variable(),
            "RINGFENCE_BUS_KEYS_FILE"
        );
    }
}
