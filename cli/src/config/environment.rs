//! The environment, read once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::CliError;

/// The environment variables of the process.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// The environment of this process.
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
            None => Err(CliError::config(format!("{name} is not UTF-8 text"))),
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0
            .get(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
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

/// The default data directory of standalone, where the operator's commands look for it: `$RINGFENCE_DATA_DIR`, else
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

/// The folder for the user's files: `$XDG_CONFIG_HOME/ringfence`, else `~/.config/ringfence`.
#[must_use]
pub fn config_dir(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.path("HOME").map(|home| home.join(".config"));
    let base = environment
        .path("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(home);
    base.map(|base| base.join("ringfence"))
}

/// The name of this machine, if it is a valid name for Ringfence.
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
