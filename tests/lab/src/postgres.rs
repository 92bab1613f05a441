//! A private PostgreSQL.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};

use crate::certificates::Issued;
use crate::error::{During, LabError};
use crate::home::{Home, random_password, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::free_tcp_port;
use crate::programs::find_postgresql;

const PACKAGE: &str = "postgresql";
const USER: &str = "ringfence";
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Variables that would redirect a client or a server, and are removed from their environment.
const NOT_INHERITED: &[&str] = &["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS"];

/// A PostgreSQL server on a loopback port of its own, with an empty cluster and production's durability.
#[derive(Debug)]
pub struct PostgreSql {
    leash: Option<Leash>,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    port: u16,
    password: String,
    tls: Option<Issued>,
    home: Home,
}

impl PostgreSql {
    /// Makes a cluster and starts its server. PostgreSQL refuses to run as root, so root runs it as `postgres`.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, or does not become ready within a minute.
    pub fn start() -> Result<Self, LabError> {
        Self::start_as(None)
    }

    /// Makes a cluster whose server has this certificate, and accepts only TLS.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_tls(tls: Issued) -> Result<Self, LabError> {
        Self::start_as(Some(tls))
    }

    fn start_as(tls: Option<Issued>) -> Result<Self, LabError> {
        let programs = find_postgresql().ok_or(LabError::Missing {
            program: "postgres",
            package: PACKAGE,
        })?;
        let mut server = Self {
            leash: None,
            programs,
            user: other_user()?,
            port: free_tcp_port()?,
            password: random_password()?,
            tls,
            home: Home::new("pg")?,
        };
        server.make_cluster()?;
        server.start_again()?;
        Ok(server)
    }

    /// The URL of a database, with the password. The database `postgres` exists, and the user may make others.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://{USER}:{}@127.0.0.1:{}/{database}",
            self.password, self.port
        )
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server of an existing cluster on its former port, after [`stop`](Self::stop) or [`crash`](Self::crash).
    ///
    /// # Errors
    /// If the server does not become ready within a minute.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        let log = self.home.join("postgres.log");
        let leash = Leash::start(Start {
            arguments: vec!["-D".to_owned(), self.home.text("data")],
            without: NOT_INHERITED,
            stop_signal: Signal::SIGINT,
            user: self.user,
            ..Start::new(&self.programs.join("postgres"), &log, self.home.path())
        })?;
        wait_ready("PostgreSQL", &leash, &log, READY_LIMIT, || self.answers())?;
        self.leash = Some(leash);
        Ok(())
    }

    /// Stops the server in order; connections are cut, not waited for.
    pub fn stop(&mut self) {
        self.leash = None;
    }

    /// Kills the server without a checkpoint, as a loss of power would; the next start recovers from its log.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn crash(&mut self) -> Result<(), LabError> {
        if let Some(leash) = self.leash.take() {
            leash.signal(Signal::SIGQUIT)?;
        }
        Ok(())
    }

    fn make_cluster(&self) -> Result<(), LabError> {
        let password_file = self.home.write("password", &self.password)?;
        let mut settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\nmax_connections = 400\n\
             shared_buffers = 64MB\nlog_line_prefix = '%m [%p] '\n",
            self.port,
            self.home.path().display(),
        );
        if let Some((uid, gid)) = self.user {
            for path in [self.home.path(), &password_file] {
                chown(path, Some(uid), Some(gid)).during(|| format!("giving {} away", path.display()))?;
            }
        }
        let mut initdb = Command::new(self.programs.join("initdb"));
        initdb
            .arg("--pgdata")
            .arg(self.home.join("data"))
            .args(["--username", USER, "--auth", "scram-sha-256", "--pwfile"])
            .arg(&password_file)
            .args(["--encoding", "UTF8", "--no-locale", "--no-sync"])
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        if let Some((uid, gid)) = self.user {
            initdb.uid(uid).gid(gid);
        }
        let done = initdb.output().during(|| "running initdb".to_owned())?;
        if !done.status.success() {
            return Err(LabError::Failed {
                program: "initdb".to_owned(),
                output: tail(&[done.stdout, done.stderr].concat()),
            });
        }
        if let Some(tls) = &self.tls {
            settings.push_str(&self.configure_tls(tls)?);
        }
        let file = self.home.join("data/postgresql.auto.conf");
        std::fs::write(&file, settings).during(|| format!("writing {}", file.display()))
    }

    /// The server's settings for TLS; clients without TLS are refused.
    fn configure_tls(&self, tls: &Issued) -> Result<String, LabError> {
        for (name, content) in [("server.crt", &tls.certificate), ("server.key", &tls.key)] {
            let path = self.home.write(name, content)?;
            if let Some((uid, gid)) = self.user {
                chown(&path, Some(uid), Some(gid)).during(|| format!("giving {} away", path.display()))?;
            }
        }
        let rules = self.home.join("data/pg_hba.conf");
        std::fs::write(&rules, "hostssl all all 127.0.0.1/32 scram-sha-256\n")
            .during(|| format!("writing {}", rules.display()))?;
        Ok(format!(
            "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
            self.home.text("server.crt"),
            self.home.text("server.key"),
        ))
    }

    fn answers(&self) -> bool {
        Command::new(self.programs.join("pg_isready"))
            .args(["--quiet", "--host", "127.0.0.1", "--timeout", "2", "--port"])
            .arg(self.port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// The user and group that must run the server, if this process may not run it.
fn other_user() -> Result<Option<(u32, u32)>, LabError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let user = User::from_name("postgres").during(|| "looking up the user postgres".to_owned())?;
    let user = user.ok_or(LabError::Missing {
        program: "the user postgres",
        package: PACKAGE,
    })?;
    Ok(Some((user.uid.as_raw(), user.gid.as_raw())))
}
