//! A real Redfish service over TLS without machines: `sushy-emulator` with its fake driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::error::{During, LabError};
use crate::home::{Home, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::{free_tcp_port, is_open};
use crate::programs::find_program;

/// The service's user.
pub const REDFISH_USER: &str = "admin";
/// The user's password.
pub const REDFISH_PASSWORD: &str = "secret";
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A Redfish service on a loopback port of its own with two systems, both powered on.
///
/// A `ForceOff` is answered at once and takes effect 1 to 11 s later. There is no session service and there are no ETags.
#[derive(Debug)]
pub struct Redfish {
    leash: Leash,
    port: u16,
    home: Home,
}

impl Redfish {
    /// The paths of the systems.
    pub const SYSTEMS: [&'static str; 2] = [
        "/redfish/v1/Systems/27946b59-9e44-4fa7-8e91-f3527a1ef001",
        "/redfish/v1/Systems/27946b59-9e44-4fa7-8e91-f3527a1ef002",
    ];

    /// Starts the service with this `sushy-emulator`, whose Python environment must have `bcrypt` as well.
    ///
    /// # Errors
    /// If `openssl` is not installed, or the service does not answer within a minute.
    pub fn start(sushy_emulator: &Path) -> Result<Self, LabError> {
        let home = Home::new("redfish")?;
        let port = free_tcp_port()?;
        make_certificate(&home)?;
        home.write("htpasswd", &password_line(sushy_emulator)?)?;
        home.make_folder("state")?;
        home.write("emulator.conf", &configuration(&home, port))?;
        let log = home.join("emulator.log");
        let leash = Leash::start(Start {
            arguments: vec!["--config".to_owned(), home.text("emulator.conf")],
            ..Start::new(sushy_emulator, &log, home.path())
        })?;
        wait_ready("sushy-emulator", &leash, &log, READY_LIMIT, || is_open(port))?;
        Ok(Self { leash, port, home })
    }

    /// The address, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The service's certificate, which is self-signed.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.home.join("cert.pem")
    }

    /// Makes the service accept connections and answer no request.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn silence(&self) -> Result<(), LabError> {
        self.leash.signal(Signal::SIGSTOP)
    }

    /// Makes a silenced service answer again.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn wake(&self) -> Result<(), LabError> {
        self.leash.signal(Signal::SIGCONT)
    }
}

impl Drop for Redfish {
    fn drop(&mut self) {
        // A stopped process does not hear SIGTERM.
        let _ = self.wake();
    }
}

fn make_certificate(home: &Home) -> Result<(), LabError> {
    let openssl = find_program("openssl").ok_or(LabError::Missing {
        program: "openssl",
        package: "openssl",
    })?;
    let mut command = Command::new(openssl);
    command
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"])
        // A strict client accepts no certificate of an authority as a server's.
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(home.join("key.pem"))
        .arg("-out")
        .arg(home.join("cert.pem"));
    run(command, "openssl").map(|_| ())
}

fn password_line(sushy_emulator: &Path) -> Result<String, LabError> {
    let mut command = Command::new(sushy_emulator.with_file_name("python"));
    command.args([
        "-c",
        "import bcrypt, sys; print(sys.argv[1] + ':' + bcrypt.hashpw(sys.argv[2].encode(), bcrypt.gensalt(4)).decode())",
        REDFISH_USER,
        REDFISH_PASSWORD,
    ]);
    run(command, "python")
}

fn run(mut command: Command, program: &str) -> Result<String, LabError> {
    let done = command.output().during(|| format!("running {program}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(LabError::Failed {
        program: program.to_owned(),
        output: tail(&done.stderr),
    })
}

fn configuration(home: &Home, port: u16) -> String {
    let systems: String = Redfish::SYSTEMS
        .iter()
        .enumerate()
        .map(|(n, path)| {
            let uuid = path.rsplit('/').next().unwrap_or_default();
            let n = n + 1;
            format!(
                "    {{'uuid': '{uuid}', 'name': 'host{n}', 'power_state': 'On', 'external_notifier': False, \
                 'nics': [{{'mac': '00:5c:52:31:3a:0{n}', 'ip': '172.22.0.{n}'}}]}},\n"
            )
        })
        .collect();
    let file = |name| home.text(name);
    format!(
        "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
         SUSHY_EMULATOR_STATE_DIR = '{}'\nSUSHY_EMULATOR_AUTH_FILE = '{}'\nSUSHY_EMULATOR_SSL_CERT = '{}'\n\
         SUSHY_EMULATOR_SSL_KEY = '{}'\nSUSHY_EMULATOR_FAKE_SYSTEMS = [\n{systems}]\n",
        file("state"),
        file("htpasswd"),
        file("cert.pem"),
        file("key.pem"),
    )
}
