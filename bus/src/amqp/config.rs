//! Where the broker is and how to log in.

use std::fmt;

use lapin::tcp::OwnedTLSConfig;
use lapin::uri::AMQPUri;
use url::{Host, Url};

use super::names::{DEFAULT_PREFIX, Names};
use crate::BusError;

/// Seconds between heartbeats; a peer that is silent for twice as long is taken for gone. Below 5 the broker's own
/// pauses would be taken for failures.
const HEARTBEAT_S: u16 = 6;

/// The address of a broker, with credentials. Its debug form shows none.
#[derive(Clone)]
pub struct AmqpConfig {
    uri: AMQPUri,
    name: String,
    ca_pem: Option<String>,
    prefix: String,
    setting: &'static str,
}

impl AmqpConfig {
    /// `uri` is `amqp[s]://USER:PASSWORD@HOST[:PORT][/VHOST]`, with `%2F` for a slash in it; without a virtual host it is
    /// `/`. `name` is how the broker lists the connections. An error names no part of the address.
    pub fn new(uri: &str, name: impl Into<String>) -> Result<Self, BusError> {
        Ok(Self {
            uri: parse(uri)?,
            name: name.into(),
            ca_pem: None,
            prefix: DEFAULT_PREFIX.to_owned(),
            setting: "bus.url",
        })
    }

    /// Certificates, as PEM, of authorities that may have signed the broker's, beside those that the system trusts.
    #[must_use]
    pub fn with_ca_pem(mut self, pem: impl Into<String>) -> Self {
        self.ca_pem = Some(pem.into());
        self
    }

    /// What the names of all queues begin with, in place of `ringfence`: keeps several installations on one virtual host apart.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The key of the configuration that holds the address, in place of `bus.url`: named where the broker refuses the user.
    #[must_use]
    pub fn with_setting(mut self, key: &'static str) -> Self {
        self.setting = key;
        self
    }

    pub(super) fn setting(&self) -> &'static str {
        self.setting
    }

    pub(super) fn names(&self) -> Names {
        Names::new(&self.prefix)
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> String {
        let authority = &self.uri.authority;
        if authority.host.contains(':') {
            format!("[{}]:{}", authority.host, authority.port)
        } else {
            format!("{}:{}", authority.host, authority.port)
        }
    }

    pub(super) fn uri(&self) -> AMQPUri {
        self.uri.clone()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tls(&self) -> OwnedTLSConfig {
        OwnedTLSConfig {
            identity: None,
            cert_chain: self.ca_pem.clone(),
        }
    }
}

impl fmt::Debug for AmqpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpConfig")
            .field("address", &self.address())
            .field("vhost", &self.uri.vhost)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn parse(text: &str) -> Result<AMQPUri, BusError> {
    let wrong = |why: &str| BusError::Configuration(format!("the broker's address cannot be used: {why}"));
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "amqp" | "amqps") {
        return Err(wrong("it has to begin with amqp:// or amqps://"));
    }
    let host = url.host().ok_or_else(|| wrong("it names no host"))?;
    // The parser's own error may quote the whole address, password included.
    let mut uri: AMQPUri = text
        .parse()
        .map_err(|_| wrong("it is not user:password@host:port/vhost"))?;
    // The parser takes a literal IPv6 address for no host at all, and falls back to localhost.
    uri.authority.host = match host {
        Host::Domain(_) => uri.authority.host,
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => ip.to_string(),
    };
    if uri.vhost.is_empty() {
        "/".clone_into(&mut uri.vhost);
    }
    uri.query.heartbeat.get_or_insert(HEARTBEAT_S);
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_shown_without_its_password() {
        let config = AmqpConfig::new("amqp://ring:hush%21@broker.example:5673/site%2Fa", "engine").unwrap();
        assert_eq!(config.address(), "broker.example:5673");
        assert_eq!(config.uri.vhost, "site/a");
        assert_eq!(config.uri.authority.userinfo.password, "hush!");
        assert!(!format!("{config:?}").contains("hush"));
    }

    #[test]
    fn a_literal_ipv6_address_is_not_taken_for_localhost() {
        let config = AmqpConfig::new("amqp://ring:hush@[2001:db8::5]/", "engine").unwrap();
        assert_eq!(config.address(), "[2001:db8::5]:5672");
        assert_eq!(config.uri.vhost, "/");
    }

    #[test]
    fn a_bad_address_is_refused_without_being_quoted() {
        for bad in [
            "amqp:hush",
            "http://u:hush@h/",
            "amqp://u:hush@h:99999/",
            "amqp://u:hush@h/?heartbeat=x",
        ] {
            let error = AmqpConfig::new(bad, "engine").unwrap_err().to_string();
            assert!(error.contains("address") && !error.contains("hush"), "{error}");
        }
    }
}
