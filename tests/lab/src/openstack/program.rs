//! Programs of an OpenStack.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::error::{During, LabError};
use crate::home::tail;
use crate::leash::{Leash, Start};

/// Debian's own Python; another one in `PATH` lacks its packages.
const PYTHON: &str = "/usr/bin/python3";
/// Variables that would redirect a service, and are removed from its environment.
const NOT_INHERITED: &[&str] = &[
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];

/// The scripts that run services or take the place of services.
pub(crate) const SCRIPTS: [(&str, &str); 7] = [
    ("run.py", include_str!("programs/run.py")),
    ("compute.py", include_str!("programs/compute.py")),
    ("guests_on_disk.py", include_str!("programs/guests_on_disk.py")),
    ("keystone_seed.py", include_str!("programs/keystone_seed.py")),
    ("stand_in.py", include_str!("programs/stand_in.py")),
    ("run_masakari.py", include_str!("programs/run_masakari.py")),
    ("neutron_agents.py", include_str!("programs/neutron_agents.py")),
];

/// A program of a service, not yet started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    stop_signal: Signal,
}

impl Program {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        let environment = [
            ("LC_ALL", "C.UTF-8"),
            // An embedded Python finds its libraries by the python3 in PATH.
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("PYTHONWARNINGS", "ignore"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // A service that hangs in its start writes its threads' stacks into its log before it is started once more.
            ("PYTHONFAULTHANDLER", "1"),
        ];
        Self {
            path: path.into(),
            stop_signal: Signal::SIGTERM,
            arguments: Vec::new(),
            environment: environment.map(|(name, value)| (name, value.to_owned())).to_vec(),
        }
    }

    /// The script of [`SCRIPTS`] with this name, in this folder.
    pub(crate) fn script(folder: &Path, name: &str) -> Self {
        let script = folder.join("programs").join(name);
        Self::new(PYTHON).arguments([script.display().to_string()])
    }

    /// The `main` of a module, run under this name.
    pub(crate) fn python(folder: &Path, name: &str, module: &str) -> Self {
        Self::script(folder, "run.py").arguments([name.to_owned(), module.to_owned()])
    }

    pub(crate) fn arguments(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(more);
        self
    }

    /// Adds configuration files.
    pub(crate) fn configured(self, files: impl IntoIterator<Item = String>) -> Self {
        let words = files
            .into_iter()
            .flat_map(|file| ["--config-file".to_owned(), file]);
        self.arguments(words)
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Makes the program's stop a kill: it has no data to keep, and would wait for services that end as well.
    pub(crate) fn with_nothing_to_keep(self) -> Self {
        Self {
            stop_signal: Signal::SIGKILL,
            ..self
        }
    }

    /// Starts the program; it ends with its leash. The owner's `home` is removed when the owner dies.
    pub(crate) fn start(self, log: &Path, home: &Path) -> Result<Leash, LabError> {
        Leash::start(Start {
            arguments: self.arguments,
            environment: self.environment,
            without: NOT_INHERITED,
            stop_signal: self.stop_signal,
            ..Start::new(&self.path, log, home)
        })
    }

    /// Runs the program to its end.
    pub(crate) fn run(self, what: &str) -> Result<(), LabError> {
        let mut command = Command::new(&self.path);
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command
            .args(&self.arguments)
            .envs(self.environment)
            .stdin(Stdio::null());
        let done = command.output().during(|| format!("running {what}"))?;
        if done.status.success() {
            return Ok(());
        }
        Err(LabError::Failed {
            program: what.to_owned(),
            output: tail(&[done.stdout, done.stderr].concat()),
        })
    }
}
