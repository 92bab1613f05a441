//! Real BMCs on free ports of this machine, removed with the test.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

const CHASSIS: &str = include_str!("peers/chassis.sh");
const LAN: &str = include_str!("peers/lan.conf");
const EMULATION: &str = include_str!("peers/bmc.emu");
const HTPASSWD: &str = include_str!("peers/htpasswd");
const SUSHY: &str = include_str!("peers/sushy.conf");

/// A process that ends with the test, together with its children.
struct Peer(Child);

impl Peer {
    fn start(command: &mut Command) -> Self {
        use std::os::unix::process::CommandExt;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        Self(child)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// An IPMI BMC (OpenIPMI's `ipmi_sim`), user `admin`, password `secret`, cipher 3.
pub struct IpmiSim {
    peer: Peer,
    dir: TempDir,
    pub port: String,
}

impl IpmiSim {
    /// Starts a BMC that is powered on, and waits until it answers.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
            .to_string();
        let fill = |text: &str| {
            text.replace("@DIR@", dir.path().to_str().unwrap())
                .replace("@PORT@", &port)
        };
        std::fs::write(dir.path().join("power"), "1\n").unwrap();
        std::fs::write(dir.path().join("lan.conf"), fill(LAN)).unwrap();
        std::fs::write(dir.path().join("bmc.emu"), EMULATION).unwrap();
        let chassis = dir.path().join("chassis.sh");
        std::fs::write(&chassis, fill(CHASSIS)).unwrap();
        std::fs::set_permissions(&chassis, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let mut command = Command::new("ipmi_sim");
        command
            .current_dir(dir.path())
            .args(["-c", "lan.conf", "-f", "bmc.emu", "-s", "state", "-n"]);
        let sim = Self {
            peer: Peer::start(&mut command),
            dir,
            port,
        };
        sim.wait_until_it_answers();
        sim
    }

    fn wait_until_it_answers(&self) {
        for _ in 0..50 {
            let status = Command::new("ipmitool")
                .args([
                    "-I",
                    "lanplus",
                    "-C",
                    "3",
                    "-H",
                    "127.0.0.1",
                    "-p",
                    &self.port,
                    "-U",
                    "admin",
                    "-E",
                ])
                .args(["-N", "1", "-R", "1", "power", "status"])
                .env("IPMI_PASSWORD", "secret")
                .output()
                .unwrap();
            if status.status.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("ipmi_sim does not answer");
    }

    /// Sets a fault: `lie` (reports success, stays as it is), `slow` (8 s for everything) or `fail`; an empty word for none.
    pub fn fault(&self, fault: &str) {
        std::fs::write(self.dir.path().join("fault"), fault).unwrap();
    }

    pub fn is_on(&self) -> bool {
        std::fs::read_to_string(self.dir.path().join("power"))
            .unwrap()
            .trim()
            == "1"
    }

    pub fn switch(&self, on: bool) {
        std::fs::write(self.dir.path().join("power"), if on { "1\n" } else { "0\n" }).unwrap();
    }

    /// How often the BMC told its chassis to change the power.
    pub fn commands(&self) -> usize {
        let log = std::fs::read_to_string(self.dir.path().join("chassis.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains(" set power ")).count()
    }

    /// Stops the BMC, so that it answers nothing.
    pub fn silence(&self) {
        kill(self.peer.pid(), Signal::SIGSTOP).unwrap();
    }
}

/// A Redfish service (`sushy-tools`) over TLS, user `admin`, password `secret`, one system.
pub struct Sushy {
    _peer: Peer,
    dir: TempDir,
    pub address: String,
}

impl Sushy {
    pub const SYSTEM: &str = "/redfish/v1/Systems/27946b59-9e44-4fa7-8e91-f3527a1ef001";

    /// Starts the service with the system in this power state, and waits until it answers.
    pub fn start(power_state: &str) -> Self {
        let program = sushy_emulator();
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        certificate(dir.path());
        std::fs::write(dir.path().join("htpasswd"), HTPASSWD).unwrap();
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let conf = SUSHY
            .replace("@DIR@", dir.path().to_str().unwrap())
            .replace("@PORT@", &port.to_string())
            .replace("@POWER@", power_state);
        std::fs::write(dir.path().join("emulator.conf"), conf).unwrap();
        let mut command = Command::new(program);
        command
            .current_dir(dir.path())
            .args(["--config", "emulator.conf"]);
        let sushy = Self {
            _peer: Peer::start(&mut command),
            dir,
            address: format!("https://127.0.0.1:{port}"),
        };
        wait_until_open(port);
        sushy
    }

    pub fn ca_file(&self) -> String {
        self.dir.path().join("cert.pem").to_str().unwrap().to_owned()
    }
}

fn certificate(dir: &Path) {
    let done = Command::new("openssl")
        .current_dir(dir)
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
        ])
        .args([
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn wait_until_open(port: u16) {
    for _ in 0..150 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("no service listens on port {port}");
}

/// From `RINGFENCE_TEST_SUSHY`, or installed once into the build folder.
fn sushy_emulator() -> PathBuf {
    if let Some(path) = std::env::var_os("RINGFENCE_TEST_SUSHY") {
        return PathBuf::from(path);
    }
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab");
    std::fs::create_dir_all(&lab).unwrap();
    let lock = std::fs::File::create(lab.join("sushy-venv.lock")).unwrap();
    let _lock = Flock::lock(lock, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .unwrap();
    let venv = lab.join("sushy-venv");
    let program = venv.join("bin/sushy-emulator");
    if !program.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        run(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "sushy-tools", "bcrypt"]));
    }
    program.canonicalize().unwrap()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
