//! An AWS account on loopback: `moto_server`, which answers as EC2 and IAM do, with two running instances and one user that may stop and
//! start them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::error::{During, LabError};
use crate::home::{Home, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::{free_tcp_port, is_open};

/// The variable with the path of `moto_server`.
pub const MOTO: &str = "RINGFENCE_TEST_MOTO";
const READY_LIMIT: Duration = Duration::from_secs(60);
const SETUP: &str = include_str!("aws.py");

/// What the account has.
#[derive(Debug, Deserialize)]
struct Account {
    instances: [String; 2],
    access_key: String,
    secret_key: String,
}

/// An account, in the region `eu-central-1`.
#[derive(Debug)]
pub struct Aws {
    _leash: Leash,
    port: u16,
    account: Account,
    _home: Home,
}

impl Aws {
    /// The region of the instances.
    pub const REGION: &str = "eu-central-1";

    /// The server that `cargo xtask` has installed before the tests, if it has.
    #[must_use]
    pub fn server_from_environment() -> Option<PathBuf> {
        std::env::var_os(MOTO)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    }

    /// Starts the account with this `moto_server`.
    ///
    /// # Errors
    /// If the server does not answer within a minute, or the account cannot be made.
    pub fn start(server: &Path) -> Result<Self, LabError> {
        let home = Home::new("aws")?;
        let port = free_tcp_port()?;
        let log = home.join("moto.log");
        let leash = Leash::start(Start {
            arguments: vec![
                "-H".to_owned(),
                "127.0.0.1".to_owned(),
                "-p".to_owned(),
                port.to_string(),
            ],
            ..Start::new(server, &log, home.path())
        })?;
        wait_ready("moto_server", &leash, &log, READY_LIMIT, || is_open(port))?;
        let account = make_account(server, &address(port))?;
        Ok(Self {
            _leash: leash,
            port,
            account,
            _home: home,
        })
    }

    /// The address of its API.
    #[must_use]
    pub fn url(&self) -> String {
        address(self.port)
    }

    /// The ids of its instances.
    #[must_use]
    pub fn instances(&self) -> [&str; 2] {
        self.account.instances.each_ref().map(String::as_str)
    }

    /// The name and the secret of the user's key.
    #[must_use]
    pub fn key(&self) -> (&str, &str) {
        (&self.account.access_key, &self.account.secret_key)
    }
}

fn address(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn make_account(server: &Path, url: &str) -> Result<Account, LabError> {
    let python = server.with_file_name("python");
    let done = Command::new(python).args(["-c", SETUP, url]).output();
    let done = done.during(|| "making an account of AWS".to_owned())?;
    if !done.status.success() {
        return Err(LabError::Failed {
            program: "making an account of AWS".to_owned(),
            output: tail(&done.stderr),
        });
    }
    serde_json::from_slice(&done.stdout).map_err(|source| LabError::Json {
        what: "the account of AWS".to_owned(),
        source,
    })
}
