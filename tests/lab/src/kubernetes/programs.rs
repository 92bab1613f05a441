//! The programs of a Kubernetes.

use std::path::PathBuf;
use std::process::Command;

use crate::error::{During, LabError};
use crate::home::tail;

/// The variable with the folder of Kubernetes' programs.
pub const KUBERNETES: &str = "RINGFENCE_TEST_KUBERNETES";

/// A folder with the programs of a control plane and of nodes.
#[derive(Clone, Debug)]
pub struct KubernetesPrograms {
    folder: PathBuf,
}

impl KubernetesPrograms {
    /// The names of the programs.
    pub const NAMES: [&str; 6] = [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "hollow-node",
    ];

    /// The programs that `cargo xtask` has built before the tests, if it has.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let folder = std::env::var_os(KUBERNETES).filter(|folder| !folder.is_empty())?;
        Some(Self {
            folder: PathBuf::from(folder),
        })
    }

    /// The path of `kubectl`.
    #[must_use]
    pub fn kubectl(&self) -> PathBuf {
        self.path("kubectl")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The 20 of version 1.20, which decides some arguments.
    pub(super) fn minor_version(&self) -> Result<u32, LabError> {
        let program = self.path("kube-apiserver");
        let what = || format!("running {} --version", program.display());
        let done = Command::new(&program).arg("--version").output().during(what)?;
        let text = String::from_utf8_lossy(&done.stdout);
        minor_of(&text).ok_or_else(|| LabError::Failed {
            program: what(),
            output: tail(&[done.stdout.as_slice(), done.stderr.as_slice()].concat()),
        })
    }
}

fn minor_of(text: &str) -> Option<u32> {
    text.trim()
        .strip_prefix("Kubernetes v1.")?
        .split('.')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_version_is_read_from_what_the_api_server_says() {
        assert_eq!(minor_of("Kubernetes v1.20.2\n"), Some(20));
        assert_eq!(minor_of("Kubernetes v1.36.4+k\n"), Some(36));
        assert_eq!(minor_of("no"), None);
    }
}
