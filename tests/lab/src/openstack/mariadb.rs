//! The databases' server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;

use crate::error::{During, LabError};
use crate::home::{tail, wait_ready};
use crate::leash::Leash;
use crate::openstack::program::Program;
use crate::programs::find_program;

const SERVER_PACKAGE: &str = "mariadb-server-core";
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A MariaDB that listens only on a Unix socket. Its data need not survive a loss of power.
#[derive(Debug)]
pub(crate) struct MariaDb {
    leash: Leash,
    client: PathBuf,
    socket: PathBuf,
}

impl MariaDb {
    /// Makes an empty data folder.
    pub(crate) fn install(data: &Path) -> Result<(), LabError> {
        let mut words = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", data.display()),
            "--auth-root-authentication-method=normal".to_owned(),
            "--skip-test-db".to_owned(),
            "--skip-name-resolve".to_owned(),
        ];
        words.extend(storage());
        Program::new(find("mariadb-install-db", SERVER_PACKAGE)?)
            .arguments(words)
            .run("mariadb-install-db")
    }

    /// Starts the server of `home/mysql`.
    pub(crate) fn start(home: &Path) -> Result<Self, LabError> {
        let socket = home.join("mysql.sock");
        let mut words = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", home.join("mysql").display()),
            format!("--socket={}", socket.display()),
            format!("--pid-file={}", home.join("mysql.pid").display()),
        ];
        let settings = [
            "--skip-networking",
            "--max-connections=600",
            "--character-set-server=utf8",
            "--innodb-buffer-pool-size=64M",
            "--skip-log-bin",
            "--performance-schema=OFF",
        ];
        words.extend(settings.map(str::to_owned));
        words.extend(storage());
        let log = home.join("log/mariadb.log");
        let leash = Program::new(find("mariadbd", SERVER_PACKAGE)?)
            .arguments(words)
            .start(&log, home)?;
        let server = Self {
            leash,
            client: find("mariadb", "mariadb-client-core")?,
            socket,
        };
        wait_ready("MariaDB", &server.leash, &log, READY_LIMIT, || {
            server.socket.exists() && server.run("select 1").is_ok()
        })?;
        Ok(server)
    }

    /// Runs statements.
    pub(crate) fn run(&self, statements: &str) -> Result<(), LabError> {
        let doing = || "running mariadb".to_owned();
        let mut client = Command::new(&self.client)
            .args(["--no-defaults", "--user=root", "--batch"])
            .arg(format!("--socket={}", self.socket.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .during(doing)?;
        if let Some(mut stdin) = client.stdin.take() {
            stdin.write_all(statements.as_bytes()).during(doing)?;
        }
        let done = client.wait_with_output().during(doing)?;
        if done.status.success() {
            return Ok(());
        }
        Err(LabError::Failed {
            program: "mariadb".to_owned(),
            output: tail(&done.stderr),
        })
    }

    /// Stops the server in order, so that its files can be copied.
    pub(crate) fn stop(mut self) {
        self.leash.stop();
    }

    pub(crate) fn crash(&mut self) {
        self.leash.crash();
    }
}

/// Options that keep all tables in one small file, which is copied fast, and that allow root to run the server.
fn storage() -> Vec<String> {
    let mut words = [
        "--innodb-file-per-table=OFF",
        "--innodb-log-file-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-flush-method=nosync",
        "--skip-innodb-doublewrite",
    ]
    .map(str::to_owned)
    .to_vec();
    if geteuid().is_root() {
        words.push("--user=root".to_owned());
    }
    words
}

fn find(program: &'static str, package: &'static str) -> Result<PathBuf, LabError> {
    find_program(program).ok_or(LabError::Missing { program, package })
}
