//! All keys of the configuration.

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
    /// An IP address and port to listen on, on this machine only.
    ListenLoopback,
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
const RESOURCES: &[&str] = &["power", "storage", "network", "workloads"];

/// All keys.
pub const FIELDS: &[Field] = &[
    field("database.url", Kind::Url(DATABASES), Default::None),
    field(
        "database.connections",
        Kind::Integer(1, 1000),
        Default::Fixed("16"),
    ),
    field(
        "database.statement_timeout_s",
        Kind::Integer(1, 3600),
        Default::Fixed("30"),
    ),
    field("bus.url", Kind::Url(BROKERS), Default::None),
    field("bus.keys_file", Kind::Path, Default::None),
    field("bus.ca_file", Kind::Path, Default::None),
    field("bus.prefix", Kind::NameUpTo(64), Default::Fixed("ringfence")),
    field("api.listen", Kind::Listen, Default::Fixed("127.0.0.1:8790")),
    field("api.tokens_file", Kind::Path, Default::None),
    field(
        "api.max_body_bytes",
        Kind::Integer(1024, 16 * MIB),
        Default::Fixed("262144"),
    ),
    field("api.certificate_file", Kind::Path, Default::None),
    field("api.key_file", Kind::Path, Default::None),
    field(
        "api.requests_per_second",
        Kind::Integer(0, 100_000),
        Default::Fixed("200"),
    ),
    field(
        "api.request_burst",
        Kind::Integer(1, 1_000_000),
        Default::Fixed("1000"),
    ),
    field("api.streams", Kind::Integer(1, 100_000), Default::Fixed("500")),
    field(
        "api.streams_per_caller",
        Kind::Integer(1, 100_000),
        Default::Fixed("50"),
    ),
    field(
        "api.failed_authentications_per_minute",
        Kind::Integer(0, 100_000),
        Default::Fixed("60"),
    ),
    field("keystone.url", Kind::Url(&["http", "https"]), Default::None),
    field("keystone.user", Kind::Text, Default::Fixed("ringfence")),
    field("keystone.user_domain", Kind::Text, Default::Fixed("Default")),
    field("keystone.password", Kind::Secret, Default::None),
    field("keystone.project", Kind::Text, Default::Fixed("service")),
    field("keystone.project_domain", Kind::Text, Default::Fixed("Default")),
    field("keystone.scopes", Kind::Scopes, Default::None),
    field("keystone.reader_roles", Kind::Names, Default::Fixed("reader")),
    field("keystone.service_roles", Kind::Names, Default::Fixed("service")),
    field(
        "keystone.operator_roles",
        Kind::Names,
        Default::Fixed("manager,member"),
    ),
    field("keystone.admin_roles", Kind::Names, Default::Fixed("admin")),
    field("keystone.ca_file", Kind::Path, Default::None),
    field(
        "keystone.timeout_ms",
        Kind::Integer(100, 60_000),
        Default::Fixed("5000"),
    ),
    field("engine.name", Kind::Name, Default::HostName),
    field("engine.tick_ms", Kind::Integer(10, 60_000), Default::Fixed("200")),
    field(
        "engine.sweep_ms",
        Kind::Integer(10, 60_000),
        Default::Fixed("500"),
    ),
    field("engine.prefetch", Kind::Integer(1, 1000), Default::Fixed("64")),
    field(
        "checks.interval_s",
        Kind::OffOr(10, 86_400),
        Default::Fixed("300"),
    ),
    field("checks.at_once", Kind::Integer(1, 256), Default::Fixed("16")),
    field(
        "retention.events_days",
        Kind::OffOr(1, 36_500),
        Default::Fixed("90"),
    ),
    field(
        "retention.operations_days",
        Kind::OffOr(1, 36_500),
        Default::Fixed("90"),
    ),
    field(
        "retention.audit_days",
        Kind::OffOr(1, 36_500),
        Default::Fixed("400"),
    ),
    field(
        "retention.deliveries_days",
        Kind::OffOr(1, 36_500),
        Default::Fixed("7"),
    ),
    field(
        "retention.event_sinks_days",
        Kind::OffOr(1, 36_500),
        Default::Fixed("7"),
    ),
    field("retention.archive_dir", Kind::Path, Default::None),
    field("webhooks.keys_file", Kind::Path, Default::None),
    field("webhooks.allowed_networks", Kind::Networks, Default::None),
    field("webhooks.ca_file", Kind::Path, Default::None),
    field("events.source", Kind::Name, Default::Fixed("default")),
    field("events.exchange", Kind::Flag, Default::Fixed("true")),
    field("oslo.url", Kind::Url(BROKERS), Default::None),
    field("oslo.ca_file", Kind::Path, Default::None),
    field("oslo.exchange", Kind::Name, Default::Fixed("openstack")),
    field(
        "oslo.topic",
        // The priority is appended, and AMQP has 255 bytes for the whole.
        Kind::NameUpTo(200),
        Default::Fixed("versioned_notifications"),
    ),
    field("oslo.durable", Kind::Flag, Default::Fixed("false")),
    field("openstack.clouds", Kind::Names, Default::None),
    field("openstack.clouds_file", Kind::Path, Default::None),
    field("openstack.adopt", Kind::Pairs, Default::None),
    field(
        "openstack.timeout_ms",
        Kind::Integer(100, 60_000),
        Default::Fixed("20000"),
    ),
    field("openstack.poll_s", Kind::Integer(1, 300), Default::Fixed("5")),
    field(
        "openstack.down_after_s",
        Kind::Integer(5, 3600),
        Default::Fixed("60"),
    ),
    field(
        "scheduler_hook.listen",
        Kind::Listen,
        Default::Fixed("127.0.0.1:8791"),
    ),
    field(
        "scheduler_hook.unknown_hosts",
        Kind::Word(&["refused", "allowed"]),
        Default::Fixed("refused"),
    ),
    field(
        "scheduler_hook.refresh_ms",
        Kind::Integer(100, 10_000),
        Default::Fixed("1000"),
    ),
    field(
        "scheduler_hook.max_age_ms",
        Kind::Integer(500, 60_000),
        Default::Fixed("5000"),
    ),
    field("worker.name", Kind::Name, Default::HostName),
    field(
        "worker.zones",
        Kind::Zones,
        Default::Fixed(ringfence_core::DEFAULT_ZONE),
    ),
    field(
        "worker.resources",
        Kind::Words(RESOURCES),
        Default::Fixed("power,storage,network,workloads"),
    ),
    field("worker.concurrency", Kind::Integer(1, 1024), Default::Fixed("64")),
    field("worker.agents_dir", Kind::Path, Default::Fixed("/usr/sbin")),
    field("worker.ipmitool", Kind::Path, Default::Fixed("/usr/bin/ipmitool")),
    field("worker.simulator_url", Kind::Url(&["http"]), Default::None),
    field("metrics.listen", Kind::Listen, Default::None),
    field("metrics.public", Kind::Flag, Default::Fixed("false")),
    field(
        "traces.otlp_endpoint",
        Kind::Url(&["http", "https"]),
        Default::None,
    ),
    field("traces.headers_file", Kind::Path, Default::None),
    field("traces.ca_file", Kind::Path, Default::None),
    field("traces.service_name", Kind::Name, Default::Fixed("ringfence")),
    field(
        "traces.sample_percent",
        Kind::Integer(1, 100),
        Default::Fixed("100"),
    ),
    field(
        "traces.timeout_ms",
        Kind::Integer(100, 60_000),
        Default::Fixed("5000"),
    ),
    field(
        "traces.queue_spans",
        Kind::Integer(64, 65_536),
        Default::Fixed("4096"),
    ),
    field(
        "log.format",
        Kind::Word(&["text", "json"]),
        Default::Fixed("text"),
    ),
    field("log.level", Kind::LogLevel, Default::Fixed("info")),
    field("standalone.data_dir", Kind::Path, Default::DataDir),
    field(
        "standalone.listen",
        Kind::ListenLoopback,
        Default::Fixed("127.0.0.1:8790"),
    ),
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
