//! The environment, looked at once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::field::{FIELDS, Field};
use super::nearest::nearest;
use crate::error::{CliError, Complaints};

/// Variables that say how to reach a service and are no configuration of one.
const CLIENT_VARIABLES: &[&str] = &[
    "RINGFENCE_CONFIG",
    "RINGFENCE_URL",
    "RINGFENCE_TOKEN",
    "RINGFENCE_TOKEN_FILE",
    "RINGFENCE_CA_FILE",
];

/// Variables with these beginnings belong to the site: secrets that methods refer to (`env:RINGFENCE_SECRET_...`), and tests.
const FREE_PREFIXES: &[&str] = &["RINGFENCE_SECRET_", "RINGFENCE_TEST_"];

/// The environment variables of the process.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
        )
    }

    /// The value of a variable that is set and not empty. One that is not UTF-8 is an error.
    pub fn get(&self, name: &str) -> Result<Option<&str>, CliError> {
        let Some(value) = self.0.get(name).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        match value.to_str() {
            Some(text) => Ok(Some(text)),
            None => Err(CliError::Config(Complaints::one(format!(
                "{name} is not UTF-8 text"
            )))),
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0
            .get(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
        )
    }
}

/// Complains about every `RINGFENCE_*` variable that means nothing.
pub fn check_names(environment: &Environment) -> Complaints {
    let variables: Vec<String> = FIELDS.iter().map(Field::variable).collect();
    let known = || {
        CLIENT_VARIABLES
            .iter()
            .copied()
            .chain(variables.iter().map(String::as_str))
    };
    let mut complaints = Complaints::default();
    for name in environment.names().filter(|name| name.starts_with("RINGFENCE_")) {
        let is_free = FREE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !is_free && !known().any(|other| other == name) {
            let nearest = nearest(name, known());
            complaints.add(format!(
                "environment variable {name} is not known; did you mean {nearest}?"
            ));
        }
    }
    complaints
}

/// Where standalone keeps its files, and the operator's commands look for them: `$RINGFENCE_DATA_DIR`, else
/// `$XDG_DATA_HOME/ringfence`, else `~/.local/share/ringfence`.
#[must_use]
pub fn data_dir(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.path("HOME").map(|home| home.join(".local/share"));
    environment.path("RINGFENCE_DATA_DIR").or_else(|| {
        let base = environment
            .path("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(home);
        base.map(|base| base.join("ringfence"))
    })
}

/// The name of this machine, as far as it can be one of ours.
#[must_use]
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let is_usable = ringfence_core::validate_name("name", name).is_ok();
    if is_usable {
        name.to_owned()
    } else {
        "localhost".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_refused_with_the_nearest_known_one() {
        let environment = Environment::from([
            ("RINGFENCE_DATABSE_URL", "x"),
            ("RINGFENCE_LOG_LEVEL", "info"),
            ("PATH", "/"),
        ]);
        let complaints = check_names(&environment).to_string();
        assert_eq!(
            complaints,
            "environment variable RINGFENCE_DATABSE_URL is not known; did you mean RINGFENCE_DATABASE_URL?"
        );
    }

    #[test]
    fn secrets_of_methods_may_have_any_name_behind_their_prefix() {
        let environment = Environment::from([("RINGFENCE_SECRET_BMC_7", "x"), ("RINGFENCE_TOKEN", "y")]);
        assert_eq!(check_names(&environment), Complaints::default());
    }

    #[test]
    fn the_data_directory_follows_the_environment() {
        let home = Environment::from([("HOME", "/home/op")]);
        assert_eq!(
            data_dir(&home),
            Some(PathBuf::from("/home/op/.local/share/ringfence"))
        );
        let xdg = Environment::from([("HOME", "/home/op"), ("XDG_DATA_HOME", "/data")]);
        assert_eq!(data_dir(&xdg), Some(PathBuf::from("/data/ringfence")));
        let own = Environment::from([("HOME", "/home/op"), ("RINGFENCE_DATA_DIR", "/srv/rf")]);
        assert_eq!(data_dir(&own), Some(PathBuf::from("/srv/rf")));
        assert_eq!(data_dir(&Environment::default()), None);
    }
}
