//! Secrets: resolved from their references at the moment of use, and never shown.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use std::sync::Arc;

use nix::fcntl::OFlag;
use ringfence_backends::kubernetes::{Cluster, FoundSecret};
use ringfence_backends::{BackendError, Platform};
use ringfence_core::SecretReference;

use crate::WorkerError;
use crate::mask::{MASK, mask};

/// The largest secret, in bytes: room for a private key.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// The value of a secret. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl SecretValue {
    /// A value from elsewhere than a reference.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the device and for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// The secrets of one method, by name.
#[derive(Clone, Debug, Default)]
pub struct Secrets(BTreeMap<String, SecretValue>);

impl Secrets {
    /// Looks all references up: those to Secrets in these clusters. Errors name the reference, never the value.
    ///
    /// # Errors
    /// A reference leads nowhere, or a cluster does not answer.
    pub async fn resolve(
        references: &BTreeMap<String, SecretReference>,
        clusters: &[Arc<Cluster>],
    ) -> Result<Self, WorkerError> {
        let is_far = |reference: &SecretReference| matches!(reference, SecretReference::Cluster { .. });
        let mut here = references.clone();
        here.retain(|_, reference| !is_far(reference));
        let mut found = match here.is_empty() {
            true => Self::default(),
            // Off the async threads: files may be slow.
            false => tokio::task::spawn_blocking(move || Self::resolve_here(&here))
                .await
                .unwrap_or_else(|_| Err(WorkerError::unclear("the secrets could not be read")))?,
        };
        for (name, reference) in references {
            if let SecretReference::Cluster { cluster, secret, key } = reference {
                let at = Place {
                    name,
                    reference,
                    secret,
                    key,
                };
                found.0.insert(name.clone(), at.resolve(cluster, clusters).await?);
            }
        }
        Ok(found)
    }

    /// Looks references up that lead to this machine alone. Blocks on the file system.
    ///
    /// # Errors
    /// A reference leads nowhere, or to a cluster.
    pub fn resolve_here(references: &BTreeMap<String, SecretReference>) -> Result<Self, WorkerError> {
        references
            .iter()
            .map(|(name, reference)| Ok((name.clone(), resolve_here(name, reference)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The secret of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&SecretValue> {
        self.0.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &SecretValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The text without any of the secrets: devices and agents repeat what they were given.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        mask(text, self.0.values().map(SecretValue::expose))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Secrets {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(secrets: I) -> Self {
        Self(
            secrets
                .into_iter()
                .map(|(name, value)| (name.into(), SecretValue::new(value)))
                .collect(),
        )
    }
}

/// A key of a Secret, and what it is wanted for.
struct Place<'a> {
    name: &'a str,
    reference: &'a SecretReference,
    secret: &'a str,
    key: &'a str,
}

impl Place<'_> {
    async fn resolve(&self, cluster: &str, clusters: &[Arc<Cluster>]) -> Result<SecretValue, WorkerError> {
        let fault = |why: String| fault(self.name, self.reference, why, None);
        let Some(cluster) = clusters.iter().find(|known| known.name() == cluster) else {
            return Err(fault(
                "is of a cluster that the worker's kubernetes.clusters does not name".to_owned(),
            ));
        };
        let Self { secret, key, .. } = self;
        let at = format!("Secret {secret} in namespace {}", cluster.namespace());
        match Box::pin(cluster.secret(secret, key)).await {
            Ok(FoundSecret::Value(value)) => match String::from_utf8(value) {
                Ok(value) => usable(self.name, self.reference, value),
                Err(_) => Err(fault("is not UTF-8 text".to_owned())),
            },
            Ok(FoundSecret::NoSecret) => Err(fault(format!("cannot be read: there is no {at}"))),
            Ok(FoundSecret::NoKey) => Err(fault(format!("cannot be read: {at} has no key {key}"))),
            Err(error) => Err(self.not_read(&error)),
        }
    }

    /// Where asking again may help, the attempt is not over.
    fn not_read(&self, error: &BackendError) -> WorkerError {
        let fault = fault(
            self.name,
            self.reference,
            format!("cannot be read: {error}"),
            None,
        );
        match error.is_passing() {
            true => WorkerError::unclear(fault.to_string()),
            false => fault,
        }
    }
}

fn resolve_here(name: &str, reference: &SecretReference) -> Result<SecretValue, WorkerError> {
    let fault = |why: &str, source| fault(name, reference, why.to_owned(), source);
    let value = match reference {
        SecretReference::Env(variable) => match std::env::var(variable) {
            Ok(value) => value,
            Err(std::env::VarError::NotPresent) => {
                return Err(fault("is not set in the worker's environment", None));
            }
            Err(std::env::VarError::NotUnicode(_)) => return Err(fault("is not UTF-8 text", None)),
        },
        SecretReference::File(path) => read_file(path).map_err(|(why, source)| fault(why, source))?,
        SecretReference::Cluster { .. } => {
            return Err(fault(
                "is no secret of this machine; env:NAME or file:/absolute/path is allowed",
                None,
            ));
        }
    };
    usable(name, reference, value)
}

fn usable(name: &str, reference: &SecretReference, value: String) -> Result<SecretValue, WorkerError> {
    let fault = |why: &str| fault(name, reference, why.to_owned(), None);
    if value.is_empty() {
        return Err(fault("is empty"));
    }
    if value.len() > MAX_SECRET_BYTES {
        return Err(fault("is larger than 64 KiB"));
    }
    Ok(SecretValue(value))
}

fn fault(name: &str, reference: &SecretReference, why: String, source: Option<io::Error>) -> WorkerError {
    WorkerError::Secret {
        name: name.to_owned(),
        reference: reference.to_string(),
        why,
        source,
    }
}

/// Opened without blocking and then looked at, so that a pipe in the file's place cannot hold the worker up.
fn read_file(path: &str) -> Result<String, (&'static str, Option<io::Error>)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(|e| ("cannot be opened", Some(e)))?;
    let metadata = file.metadata().map_err(|e| ("cannot be looked at", Some(e)))?;
    if !metadata.is_file() {
        return Err(("is not a regular file", None));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that is too large, one more makes room for the newline.
    file.take(MAX_SECRET_BYTES as u64 + 2)
        .read_to_end(&mut bytes)
        .map_err(|e| ("cannot be read", Some(e)))?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| ("is not UTF-8 text", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(path: &std::path::Path) -> Result<Secrets, WorkerError> {
        let reference = SecretReference::File(path.to_string_lossy().into_owned());
        Secrets::resolve_here(&BTreeMap::from([("password".to_owned(), reference)]))
    }

    #[test]
    fn one_newline_at_the_end_of_a_file_is_dropped_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "hunter2 \n\n").unwrap();
        assert_eq!(
            from_file(&path).unwrap().get("password").unwrap().expose(),
            "hunter2 \n"
        );
    }

    #[test]
    fn the_error_names_the_reference_and_nothing_of_the_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, b"hunter2\xff").unwrap();
        let text = from_file(&path).unwrap_err().to_string();
        assert!(text.contains(&format!("file:{}", path.display())), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_pipe_a_folder_and_a_file_that_is_too_large_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(
            from_file(&pipe)
                .unwrap_err()
                .to_string()
                .ends_with("is not a regular file")
        );
        assert!(
            from_file(dir.path())
                .unwrap_err()
                .to_string()
                .ends_with("is not a regular file")
        );
        let large = dir.path().join("large");
        std::fs::write(&large, vec![b'x'; MAX_SECRET_BYTES + 1]).unwrap();
        assert!(
            from_file(&large)
                .unwrap_err()
                .to_string()
                .ends_with("is larger than 64 KiB")
        );
        std::fs::write(&large, "").unwrap();
        assert!(from_file(&large).unwrap_err().to_string().ends_with("is empty"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let reference = SecretReference::Env("RINGFENCE_TEST_NO_SUCH_SECRET".to_owned());
        let error = resolve_here("password", &reference).unwrap_err();
        assert_eq!(
            error.to_string(),
            "secret \"password\" from env:RINGFENCE_TEST_NO_SUCH_SECRET is not set in the worker's environment"
        );
    }

    #[test]
    fn a_secret_is_shown_by_neither_debug_nor_masked_text() {
        let secrets: Secrets = [("a", "pass"), ("b", "password1")].into_iter().collect();
        assert!(!format!("{secrets:?}").contains("pass"), "{secrets:?}");
        assert_eq!(
            secrets.mask("got password1, then pass"),
            "got [secret], then [secret]"
        );
    }
}
