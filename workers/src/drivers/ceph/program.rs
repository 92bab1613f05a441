//! The programs `ceph` and `rados`. They read the key from a file in memory, by its standard input: arguments and files on disk show it to others.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_core::{FrozenMethod, value_of};
use tokio::time::Instant;

use super::reached::{CONF, DEFAULT_USER};
use crate::process::{self, Ended, Input, ProcessError};
use crate::{SecretValue, Secrets};

/// A long blocklist has some thousand entries of 80 bytes, and 100,000 placement groups have 150 bytes each.
const MAX_OUTPUT_BYTES: usize = 64 * 1024 * 1024;
/// Ceph's codes of errors that another try would not change: no permission, and a command that it does not know.
const DEFINITE: [i32; 2] = [13, 22];

/// How one cluster is asked.
pub(in crate::drivers) struct Ceph<'a> {
    program: &'a Path,
    conf: &'a str,
    monitors: Option<Cow<'a, str>>,
    user: &'a str,
    keyring: Option<&'a str>,
}

impl<'a> Ceph<'a> {
    /// `monitors` are those of Rook, where it is Rook's.
    pub fn new(
        program: &'a Path,
        method: &'a FrozenMethod,
        secrets: &'a Secrets,
        monitors: Option<String>,
    ) -> Self {
        let optional = |name: &str| value_of(&method.parameters, name);
        let monitors = monitors
            .map(Cow::Owned)
            .or_else(|| optional("monitors").map(Cow::Borrowed));
        let without = if monitors.is_some() { "/dev/null" } else { CONF };
        Self {
            program,
            conf: optional("conf").unwrap_or(without),
            monitors,
            user: optional("user").unwrap_or(DEFAULT_USER),
            keyring: secrets.get("keyring").map(SecretValue::expose),
        }
    }

    /// Tells the cluster from others, as far as its method does.
    pub fn place(&self) -> String {
        let Self {
            conf, monitors, user, ..
        } = self;
        format!("{conf} {} {user}", monitors.as_deref().unwrap_or_default())
    }

    /// Runs `ceph` with these arguments.
    pub async fn run(&self, arguments: &[&str], until: Instant) -> Result<Ended, ProcessError> {
        self.run_program(self.program, arguments, until).await
    }

    /// Runs `rados`, which is beside `ceph`, with these arguments.
    pub async fn rados(&self, arguments: &[&str], until: Instant) -> Result<Ended, ProcessError> {
        self.run_program(&rados(self.program), arguments, until).await
    }

    async fn run_program(
        &self,
        path: &Path,
        arguments: &[&str],
        until: Instant,
    ) -> Result<Ended, ProcessError> {
        let mut args = vec!["--conf", self.conf, "--name", self.user];
        args.extend(
            self.monitors
                .iter()
                .flat_map(|monitors| ["-m", monitors.as_ref()]),
        );
        args.extend(self.keyring.iter().flat_map(|_| ["--keyring", "/dev/stdin"]));
        args.extend(arguments);
        let keyring = self.keyring.unwrap_or_default();
        let program = process::Program {
            path: path.to_owned(),
            args: args.into_iter().map(OsString::from).collect(),
            env: process::plain_environment(),
            // The newline that a secret's file has lost.
            input: Input::File(format!("{keyring}\n").into_bytes()),
            max_output_bytes: MAX_OUTPUT_BYTES,
        };
        process::run(program, until).await
    }
}

/// Where `rados` is.
pub(in crate::drivers) fn rados(ceph: &Path) -> PathBuf {
    ceph.with_file_name("rados")
}

/// Secrets with the keys in a keyring beside it, so that a text that repeats only a key does not show it.
pub(in crate::drivers) fn with_keys(secrets: &Secrets) -> Secrets {
    let keyring = secrets
        .get("keyring")
        .map(SecretValue::expose)
        .unwrap_or_default();
    let keys = keyring.lines().filter_map(|line| line.split_once('='));
    let keys = keys.filter(|(name, _)| name.trim() == "key").enumerate();
    let keys = keys.map(|(n, (_, key))| (format!("key {n}"), key.trim()));
    let given = secrets
        .iter()
        .map(|(name, secret)| (name.to_owned(), secret.expose()));
    given.chain(keys).collect()
}

/// Whether another run would fail for the reason of this one.
pub(super) fn is_definite(ended: &Ended) -> bool {
    ended.code.is_some_and(|code| DEFINITE.contains(&code))
}

/// What it printed last, and how it ended.
pub(super) fn words(ended: &Ended) -> String {
    match (last_line(ended), ended.code) {
        (Some(said), Some(0)) => said,
        (said, Some(code)) => format!(
            "ceph ended with {code}: {}",
            said.as_deref().unwrap_or("it printed nothing")
        ),
        (said, None) => format!(
            "ceph died of a signal: {}",
            said.as_deref().unwrap_or("it printed nothing")
        ),
    }
}

/// What it printed last.
pub(in crate::drivers) fn last_line(ended: &Ended) -> Option<String> {
    let last = |text: &str| {
        text.lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .map(str::to_owned)
    };
    last(&ended.stderr).or_else(|| last(&ended.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_masked_without_the_keyring_around_it() {
        let keyring = "[client.ringfence]\n\tkey = AQBsRQdrPWetHxAALWpW7w==\n";
        let secrets = with_keys(&[("keyring", keyring)].into_iter().collect());
        assert_eq!(
            secrets.mask("bad key AQBsRQdrPWetHxAALWpW7w==!"),
            "bad key [secret]!"
        );
        assert!(secrets.get("keyring").is_some());
    }
}
