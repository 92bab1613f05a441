//! A real Keystone on SQLite.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use nix::sys::signal::Signal;

use crate::certificates::Issued;
use crate::error::{During, LabError};
use crate::home::{Home, random_password, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::{free_tcp_port, is_open};

/// The user `admin` of the project `admin`, both in the domain `Default`.
pub const KEYSTONE_PASSWORD: &str = "secret";
const READY_LIMIT: Duration = Duration::from_secs(60);
const SERVER: &str = include_str!("keystone.py");
/// Variables that would redirect the service, and are removed from its environment.
const NOT_INHERITED: &[&str] = &["PYTHONPATH", "PYTHONHOME"];

/// A Keystone on a loopback port of its own, with the domain `Default`, the usual roles, and the user and project `admin`.
///
/// Users, roles and projects are cached, as in production: without the cache a request takes half a second of a core. Tokens are not
/// cached, so that a revocation takes effect at once.
#[derive(Debug)]
pub struct Keystone {
    leash: Option<Leash>,
    /// The folder of the Python environment's programs.
    programs: PathBuf,
    port: u16,
    options: KeystoneOptions,
    home: Home,
}

/// The differences between a Keystone and the usual one.
#[derive(Clone, Debug)]
pub struct KeystoneOptions {
    /// The lifetime of tokens in seconds.
    pub lifetime_s: u32,
    /// The certificate; without one Keystone serves plain HTTP.
    pub tls: Option<Issued>,
}

impl Default for KeystoneOptions {
    fn default() -> Self {
        Self {
            lifetime_s: 3600,
            tls: None,
        }
    }
}

impl Keystone {
    /// Makes a database and starts the service with the Python environment of this `keystone-manage`.
    ///
    /// # Errors
    /// If the database cannot be made, or the service does not answer within a minute.
    pub fn start(keystone_manage: &Path, options: KeystoneOptions) -> Result<Self, LabError> {
        let mut service = Self {
            leash: None,
            programs: keystone_manage.parent().unwrap_or(Path::new("/")).to_owned(),
            port: free_tcp_port()?,
            options,
            home: Home::new("keystone")?,
        };
        service.configure()?;
        service.manage(&["db_sync"])?;
        let url = service.url();
        service.manage(&[
            "bootstrap",
            "--bootstrap-username=admin",
            "--bootstrap-project-name=admin",
            "--bootstrap-role-name=admin",
            &format!("--bootstrap-password={KEYSTONE_PASSWORD}"),
            &format!("--bootstrap-public-url={url}/v3"),
        ])?;
        service.start_again()?;
        Ok(service)
    }

    /// The address, without `/v3`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.options.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Starts the service on its former port with its former data.
    ///
    /// # Errors
    /// If the service does not answer within a minute.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        let log = self.home.join("keystone.log");
        let mut arguments = vec![self.home.text("server.py"), self.port.to_string()];
        if self.options.tls.is_some() {
            arguments.extend(["server.crt", "server.key"].map(|name| self.home.text(name)));
        }
        let leash = Leash::start(Start {
            arguments,
            environment: vec![("OS_KEYSTONE_CONFIG_FILES", self.home.text("keystone.conf"))],
            without: NOT_INHERITED,
            ..Start::new(&self.programs.join("python"), &log, self.home.path())
        })?;
        wait_ready("Keystone", &leash, &log, READY_LIMIT, || is_open(self.port))?;
        self.leash = Some(leash);
        Ok(())
    }

    /// Kills the service, as a loss of power would.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn crash(&mut self) -> Result<(), LabError> {
        if let Some(leash) = self.leash.take() {
            leash.signal(Signal::SIGKILL)?;
        }
        Ok(())
    }

    fn configure(&self) -> Result<(), LabError> {
        for folder in ["tokens", "receipts", "credentials"] {
            self.home.make_folder(folder)?;
            for number in ["0", "1"] {
                let key = URL_SAFE.encode(random_password()?);
                self.home.write(&format!("{folder}/{number}"), &key)?;
            }
        }
        if let Some(tls) = &self.options.tls {
            self.home.write("server.crt", &tls.certificate)?;
            self.home.write("server.key", &tls.key)?;
        }
        self.home.write("server.py", SERVER)?;
        self.home.write("keystone.conf", &self.settings())?;
        Ok(())
    }

    fn settings(&self) -> String {
        let at = |name| self.home.text(name);
        format!(
            "[DEFAULT]\nuse_stderr = true\n[database]\nconnection = sqlite:///{}\n[token]\nexpiration = {}\ncaching = false\n[revoke]\ncaching = false\n[fernet_tokens]\nkey_repository = {}\n\
             [fernet_receipts]\nkey_repository = {}\n[credential]\nkey_repository = {}\n[cache]\nenabled = true\nbackend = dogpile.cache.memory\n\
             [identity]\npassword_hash_algorithm = bcrypt\npassword_hash_rounds = 4\n",
            at("keystone.db"),
            self.options.lifetime_s,
            at("tokens"),
            at("receipts"),
            at("credentials"),
        )
    }

    fn manage(&self, arguments: &[&str]) -> Result<(), LabError> {
        let program = self.programs.join("keystone-manage");
        let mut command = Command::new(&program);
        command
            .arg("--config-file")
            .arg(self.home.join("keystone.conf"))
            .args(arguments)
            .current_dir(self.home.path());
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        let done = command
            .output()
            .during(|| format!("running {}", program.display()))?;
        if done.status.success() {
            return Ok(());
        }
        Err(LabError::Failed {
            program: format!("keystone-manage {}", arguments.first().unwrap_or(&"")),
            output: tail(&[done.stdout, done.stderr].concat()),
        })
    }
}
