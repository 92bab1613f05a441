//! Merges the layers of the configuration, and remembers the source of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::environment::Environment;
use super::field::{FIELDS, Field, Kind, find};
use super::file;
use super::names::check_names;
use super::secret_url::SecretUrl;
use super::settings::Settings;
use super::value::{Raw, check};
use crate::error::{CliError, Complaints};

/// The sources of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file that was named with `--config`.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Environment,
    /// The flags that were given.
    pub flags: Vec<Flag>,
}

/// A flag that sets a key.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The key that it sets.
    pub key: &'static str,
    /// The flag as it is written on the command line.
    pub name: &'static str,
    /// The flag's value.
    pub value: String,
}

#[derive(Clone, Debug)]
enum Origin {
    Default,
    File(PathBuf, usize),
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "file {}:{line}", path.display()),
            Self::Variable(name) => write!(f, "env {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// The effective value of a key, as `config check` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Effective {
    /// The key.
    pub key: &'static str,
    /// The value, without secrets; `null` where nothing is set.
    pub value: Json,
    /// The source of the value.
    pub from: String,
}

/// Reads the layers. The error holds all complaints.
pub fn load(sources: &Sources) -> Result<(Settings, Vec<Effective>), CliError> {
    let mut layers = Layers::default();
    layers.defaults(&sources.environment);
    layers.file(sources)?;
    layers.variables(&sources.environment)?;
    layers.flags(&sources.flags);
    layers.complaints.clone().into_result()?;
    let settings = layers.settings()?;
    Ok((settings, layers.effective()))
}

#[derive(Default)]
struct Layers {
    values: BTreeMap<&'static str, (Json, Origin)>,
    complaints: Complaints,
}

impl Layers {
    fn defaults(&mut self, environment: &Environment) {
        for field in FIELDS {
            if let Some(text) = field.default.text(environment) {
                self.put(field, &Raw::Word(text), Origin::Default);
            }
        }
    }

    fn file(&mut self, sources: &Sources) -> Result<(), CliError> {
        let variable = sources.environment.get("RINGFENCE_CONFIG")?.map(PathBuf::from);
        let named = sources.file.clone().or(variable);
        let Some((path, text)) = file::read(named.as_deref())? else {
            return Ok(());
        };
        for entry in file::entries(&path, &text, &mut self.complaints) {
            self.put(entry.field, &entry.raw, Origin::File(path.clone(), entry.line));
        }
        Ok(())
    }

    fn variables(&mut self, environment: &Environment) -> Result<(), CliError> {
        self.complaints.extend(check_names(environment));
        for field in FIELDS {
            let name = field.variable();
            if let Some(text) = environment.get(&name)? {
                self.put(field, &Raw::Word(text.to_owned()), Origin::Variable(name));
            }
        }
        Ok(())
    }

    fn flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            if let Some(field) = find(flag.key) {
                self.put(field, &Raw::Word(flag.value.clone()), Origin::Flag(flag.name));
            }
        }
    }

    fn put(&mut self, field: &'static Field, raw: &Raw, origin: Origin) {
        match check(field.kind, raw) {
            Ok(value) => {
                self.values.insert(field.key, (value, origin));
            }
            Err(why) => self.complaints.add(format!("{} ({origin}) {why}", field.key)),
        }
    }

    fn settings(&self) -> Result<Settings, CliError> {
        let mut sections: Map<String, Json> = FIELDS
            .iter()
            .map(|field| (field.section().to_owned(), Json::Object(Map::new())))
            .collect();
        for (key, (value, _)) in &self.values {
            if let Some((section, name)) = key.split_once('.')
                && let Some(Json::Object(keys)) = sections.get_mut(section)
            {
                keys.insert(name.to_owned(), value.clone());
            }
        }
        serde_json::from_value(Json::Object(sections))
            .map_err(|error| CliError::config(format!("the configuration cannot be used: {error}")))
    }

    fn effective(&self) -> Vec<Effective> {
        let shown = |field: &Field, value: &Json| match (field.kind, value) {
            (Kind::Url(_), Json::String(url)) => Json::String(SecretUrl::new(url).to_string()),
            _ => value.clone(),
        };
        let effective = |field: &'static Field| match self.values.get(field.key) {
            Some((value, origin)) => Effective {
                key: field.key,
                value: shown(field, value),
                from: origin.to_string(),
            },
            None => Effective {
                key: field.key,
                value: Json::Null,
                from: "not set".to_owned(),
            },
        };
        FIELDS.iter().map(effective).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn sources(file: &tempfile::NamedTempFile) -> Sources {
        Sources {
            file: Some(file.path().to_owned()),
            ..Sources::default()
        }
    }

    fn from<'a>(effective: &'a [Effective], key: &str) -> &'a str {
        &effective.iter().find(|e| e.key == key).unwrap().from
    }

    #[test]
    fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
        let file = file("[log]\nlevel = \"debug\"\nformat = \"json\"\n[engine]\ntick_ms = 50\n");
        let mut sources = sources(&file);
        sources.environment =
            Environment::from([("RINGFENCE_LOG_LEVEL", "warn"), ("RINGFENCE_LOG_FORMAT", "text")]);
        sources.flags = vec![Flag {
            key: "log.level",
            name: "--log-level",
            value: "trace".to_owned(),
        }];
        let (settings, effective) = load(&sources).unwrap();
        assert_eq!(settings.log.level, "trace");
        assert_eq!(from(&effective, "log.level"), "flag --log-level");
        assert_eq!(from(&effective, "log.format"), "env RINGFENCE_LOG_FORMAT");
        assert_eq!(settings.engine.tick_ms, 50);
        assert!(from(&effective, "engine.tick_ms").ends_with(":5"));
        assert_eq!(settings.engine.sweep_ms, 500);
        assert_eq!(from(&effective, "engine.sweep_ms"), "default");
        assert_eq!(from(&effective, "database.url"), "not set");
    }

    #[test]
    fn every_known_key_reaches_the_settings() {
        let home = Environment::from([
            ("HOME", "/h"),
            ("RINGFENCE_DATABASE_URL", "postgres://r:hush@db/r"),
            ("RINGFENCE_BUS_URL", "amqp://r:hush@mq/"),
            ("RINGFENCE_BUS_KEYS_FILE", "/k"),
            ("RINGFENCE_BUS_CA_FILE", "/c"),
            ("RINGFENCE_API_TOKENS_FILE", "/t"),
            ("RINGFENCE_API_CERTIFICATE_FILE", "/crt"),
            ("RINGFENCE_API_KEY_FILE", "/key"),
            ("RINGFENCE_KEYSTONE_URL", "https://k/v3"),
            ("RINGFENCE_KEYSTONE_PASSWORD", "file:/p"),
            ("RINGFENCE_KEYSTONE_SCOPES", "system,project:a b@Default"),
            ("RINGFENCE_KEYSTONE_CA_FILE", "/ca"),
            ("RINGFENCE_WORKER_ZONES", "a,b"),
            ("RINGFENCE_WORKER_KDUMP_LISTEN", "127.0.0.1:7410"),
            ("RINGFENCE_WORKER_SIMULATOR_URL", "http://127.0.0.1:1/"),
            ("RINGFENCE_METRICS_LISTEN", "127.0.0.1:9109"),
            ("RINGFENCE_WEBHOOKS_KEYS_FILE", "/w"),
            ("RINGFENCE_WEBHOOKS_ALLOWED_NETWORKS", "10.0.0.0/8,fd00::/8"),
            ("RINGFENCE_WEBHOOKS_CA_FILE", "/a"),
            ("RINGFENCE_OSLO_URL", "amqp://o:hush@mq/"),
            ("RINGFENCE_OSLO_CA_FILE", "/o"),
            ("RINGFENCE_OPENSTACK_CLOUDS", "east,west"),
            ("RINGFENCE_OPENSTACK_CLOUDS_FILE", "/y"),
            ("RINGFENCE_OPENSTACK_ADOPT", "east:rack"),
            ("RINGFENCE_KUBERNETES_CLUSTERS", "prod,edge"),
            ("RINGFENCE_KUBERNETES_KUBECONFIG", "/kc"),
            ("RINGFENCE_KUBERNETES_CONTEXTS", "edge:other"),
            ("RINGFENCE_KUBERNETES_ADOPT", "prod:rack"),
            ("RINGFENCE_KUBERNETES_FENCED_STORAGE", "rbd.csi.ceph.com"),
            ("RINGFENCE_KUBERNETES_RECORDS", "edge"),
            ("RINGFENCE_KUBERNETES_OPERATOR", "prod"),
            ("RINGFENCE_RETENTION_ARCHIVE_DIR", "/r"),
            ("RINGFENCE_TRACES_OTLP_ENDPOINT", "https://c:4318"),
            ("RINGFENCE_TRACES_HEADERS_FILE", "/h"),
            ("RINGFENCE_TRACES_CA_FILE", "/o"),
        ]);
        let (settings, effective) = load(&Sources {
            environment: home,
            ..Sources::default()
        })
        .unwrap();
        assert!(effective.iter().all(|e| e.from != "not set"), "{effective:?}");
        assert_eq!(settings.worker.zones, ["a", "b"]);
        assert_eq!(settings.webhooks.allowed_networks.len(), 2);
        assert_eq!(settings.openstack.clouds, ["east", "west"]);
        assert_eq!(settings.kubernetes.fenced_storage, ["rbd.csi.ceph.com"]);
        assert_eq!(settings.kubernetes.operator, ["prod"]);
        assert_eq!(settings.kubernetes.records.as_deref(), Some("edge"));
        assert_eq!(settings.metrics.listen, "127.0.0.1:9109".parse().ok());
        assert_eq!(settings.database.url.unwrap().expose(), "postgres://r:hush@db/r");
    }

    #[test]
    fn no_secret_is_shown() {
        let environment = Environment::from([("RINGFENCE_DATABASE_URL", "postgres://r:hush@db/r")]);
        let (settings, effective) = load(&Sources {
            environment,
            ..Sources::default()
        })
        .unwrap();
        assert!(!format!("{settings:?}{effective:?}").contains("hush"));
        assert_eq!(effective[0].value, "postgres://r:***@db/r");
    }

    #[test]
    fn all_complaints_come_at_once() {
        let file = file("[api]\nlisten = 8790\n[engine]\ntick = 3\n");
        let mut sources = sources(&file);
        sources.environment = Environment::from([("RINGFENCE_ENGINE_PREFETCH", "0")]);
        let error = load(&sources).unwrap_err().to_string();
        for part in [
            "api.listen (file ",
            "is a number",
            "did you mean engine.tick_ms?",
            "RINGFENCE_ENGINE_PREFETCH",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn a_named_file_that_is_not_there_is_an_error() {
        let sources = Sources {
            file: Some(PathBuf::from("/no/such/file")),
            ..Sources::default()
        };
        let error = load(&sources).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the configuration /no/such/file");
    }
}
