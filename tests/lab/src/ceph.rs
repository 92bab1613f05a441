//! A real Ceph on loopback: one monitor, one OSD that keeps its objects in memory, and clients that write.
//!
//! There is no manager: it only counts, and neither objects nor blocklists need it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::error::{During, LabError};
use crate::home::{Home, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::net::{free_tcp_port, is_open};

/// The variable with the folder of Ceph's programs.
pub const CEPH: &str = "RINGFENCE_TEST_CEPH";
const READY_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// Seconds after which a writing client ends by itself.
const WRITES_FOR_S: &str = "300";
const POOL: &str = "volumes";
const ADMIN: &str = "client.admin";
const FSID: &str = "5bca1b2e-6a50-4c0b-a4b1-2a7c2f1a6c35";
const OSD: &str = "5bca1b2e-6a50-4c0b-a4b1-2a7c2f1a6c36";
/// The users with their rights.
const USERS: [(&str, &[(&str, &str)]); 4] = [
    ("mon.", &[("mon", "allow *")]),
    (
        ADMIN,
        &[("mon", "allow *"), ("osd", "allow *"), ("mgr", "allow *")],
    ),
    ("osd.0", &[("mon", "allow profile osd"), ("osd", "allow *")]),
    // For a driver that fences: it sees the cluster, and acts on the blocklist alone.
    (
        Ceph::FENCING_USER,
        &[("mon", "allow r, allow command \"osd blocklist\"")],
    ),
];

/// Where the programs are: a folder with the content of Debian's packages.
#[derive(Clone, Debug)]
pub struct CephPrograms {
    root: PathBuf,
}

impl CephPrograms {
    /// The names of the programs.
    pub const NAMES: [&str; 6] = [
        "ceph",
        "ceph-authtool",
        "ceph-mon",
        "ceph-osd",
        "monmaptool",
        "rados",
    ];

    /// In this folder.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The programs that `cargo xtask` has unpacked before the tests, if it has.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let root = std::env::var_os(CEPH).filter(|root| !root.is_empty())?;
        Some(Self::new(root.into()))
    }

    /// Whether all of them are there.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        Self::NAMES.iter().all(|name| self.program(name).is_file())
    }

    fn program(&self, name: &str) -> PathBuf {
        self.root.join("usr/bin").join(name)
    }

    fn libraries(&self) -> PathBuf {
        self.root.join("usr/lib/x86_64-linux-gnu")
    }

    /// The variables by which the programs find what was unpacked with them.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let folder = |name: &str| self.root.join(name).display().to_string();
        let libraries = self.libraries();
        let libraries = [
            libraries.display().to_string(),
            libraries.join("ceph").display().to_string(),
            folder("lib/x86_64-linux-gnu"),
        ];
        vec![
            ("LD_LIBRARY_PATH", libraries.join(":")),
            ("PYTHONPATH", folder("usr/lib/python3/dist-packages")),
        ]
    }
}

/// A cluster with one pool.
#[derive(Debug)]
pub struct Ceph {
    osd: Leash,
    monitor: Leash,
    programs: CephPrograms,
    port: u16,
    home: Home,
}

impl Ceph {
    /// The user that may read and change the blocklist.
    pub const FENCING_USER: &str = "client.ringfence";
    /// The address of all clients.
    pub const ADDRESS: &str = "127.0.0.1";

    /// Starts a cluster and waits until it takes writes.
    ///
    /// # Errors
    /// If a program is missing, or the cluster does not take a write within a minute.
    pub fn start(programs: &CephPrograms) -> Result<Self, LabError> {
        let home = Home::new("ceph")?;
        let port = free_tcp_port()?;
        home.write("ceph.conf", &configuration(&home, port, programs))?;
        home.write(
            "client.conf",
            &format!("[global]\nmon host = v2:127.0.0.1:{port}\n"),
        )?;
        let tools = Tools {
            programs,
            home: &home,
        };
        tools.write_program()?;
        tools.make_keyring()?;
        tools.make_monitor(port)?;
        let monitor = tools.start("ceph-mon", "a")?;
        wait_ready(
            "ceph-mon",
            &monitor,
            &home.join("ceph-mon.log"),
            READY_LIMIT,
            || is_open(port),
        )?;
        tools.ceph(&["osd", "new", OSD])?;
        home.make_folder("osd.0")?;
        tools.run("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", OSD])?;
        let osd = tools.start("ceph-osd", "0")?;
        tools.ceph(&["osd", "pool", "create", POOL, "1"])?;
        let cluster = Self {
            osd,
            monitor,
            programs: programs.clone(),
            port,
            home,
        };
        cluster.until_written("first")?;
        Ok(cluster)
    }

    /// The program `ceph`, which finds its libraries by itself.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.home.join("ceph")
    }

    /// The configuration of clients. It names no keyring.
    #[must_use]
    pub fn conf(&self) -> PathBuf {
        self.home.join("client.conf")
    }

    /// The monitor's address.
    #[must_use]
    pub fn monitor(&self) -> String {
        format!("v2:127.0.0.1:{}", self.port)
    }

    /// The keyring of the user that fences.
    ///
    /// # Errors
    /// If the cluster does not tell it.
    pub fn keyring(&self) -> Result<String, LabError> {
        self.ceph(&["auth", "get", Self::FENCING_USER])
    }

    /// Runs `ceph` as administrator; returns what it prints.
    ///
    /// # Errors
    /// If it fails.
    pub fn ceph(&self, arguments: &[&str]) -> Result<String, LabError> {
        self.tools().ceph(arguments)
    }

    /// Writes an object as a new client. Returns whether the cluster took it.
    ///
    /// # Errors
    /// If the client cannot be run.
    pub fn writes(&self, object: &str) -> Result<bool, LabError> {
        let content = self.home.text("ceph.conf");
        let done = self
            .tools()
            .output("rados", &["--pool", POOL, "put", object, &content])?;
        Ok(done.status.success())
    }

    /// How many objects the pool has.
    ///
    /// # Errors
    /// If the client cannot be run.
    pub fn objects(&self) -> Result<usize, LabError> {
        let names = self.tools().run("rados", &["--pool", POOL, "ls"])?;
        Ok(names.lines().count())
    }

    /// Starts a client that writes one object after the other over one connection, for up to five minutes.
    ///
    /// # Errors
    /// If the client cannot be run.
    pub fn start_writing(&self) -> Result<CephWriter, LabError> {
        let log = self.home.join("writer.log");
        let program = self.programs.program("rados");
        let mut start = Start::new(&program, &log, self.home.path());
        start.environment = self.tools().environment();
        start.arguments = [
            "--pool",
            POOL,
            "bench",
            WRITES_FOR_S,
            "write",
            "-b",
            "4096",
            "-t",
            "1",
            "--no-cleanup",
        ]
        .map(str::to_owned)
        .to_vec();
        Ok(CephWriter(Leash::start(start)?))
    }

    /// Makes the monitor accept connections and answer nothing.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn silence(&self) -> Result<(), LabError> {
        self.monitor.signal(Signal::SIGSTOP)
    }

    /// Makes a silenced monitor answer again.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn wake(&self) -> Result<(), LabError> {
        self.monitor.signal(Signal::SIGCONT)
    }

    fn until_written(&self, object: &str) -> Result<(), LabError> {
        let begun = Instant::now();
        while begun.elapsed() < READY_LIMIT && self.osd.is_running() {
            if self.writes(object)? {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        let log = self.home.join("ceph-osd.log");
        Err(LabError::NotReady {
            peer: "ceph-osd",
            seconds: READY_LIMIT.as_secs(),
            tail: tail(&std::fs::read(&log).unwrap_or_default()),
            log,
        })
    }

    fn tools(&self) -> Tools<'_> {
        Tools {
            programs: &self.programs,
            home: &self.home,
        }
    }
}

impl Drop for Ceph {
    fn drop(&mut self) {
        // A stopped process does not hear SIGTERM.
        let _ = self.wake();
    }
}

/// A client that writes until it is refused.
#[derive(Debug)]
pub struct CephWriter(Leash);

impl CephWriter {
    /// Whether it still writes.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.0.is_running()
    }
}

/// The programs at work in the folder of one cluster.
struct Tools<'a> {
    programs: &'a CephPrograms,
    home: &'a Home,
}

impl Tools<'_> {
    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut environment = self.programs.environment();
        environment.push(("CEPH_CONF", self.home.text("ceph.conf")));
        environment
    }

    /// A program that runs in any environment.
    fn write_program(&self) -> Result<(), LabError> {
        let variables = self.programs.environment();
        let set: String = variables
            .iter()
            .map(|(name, value)| format!("{name}='{value}' "))
            .collect();
        let ceph = self.programs.program("ceph");
        let script = format!(
            "#!/bin/sh\n{set}exec /usr/bin/python3 {} \"$@\"\n",
            ceph.display()
        );
        self.home.write_script("ceph", &script).map(|_| ())
    }

    fn make_keyring(&self) -> Result<(), LabError> {
        self.home.write("keyring", "")?;
        for (user, rights) in USERS {
            let mut arguments = vec!["keyring", "--gen-key", "--name", user];
            for (part, right) in rights {
                arguments.extend(["--cap", part, right]);
            }
            self.run("ceph-authtool", &arguments)?;
        }
        Ok(())
    }

    fn make_monitor(&self, port: u16) -> Result<(), LabError> {
        let address = format!("[v2:127.0.0.1:{port}]");
        let map = ["--create", "--fsid", FSID, "--addv", "a", &address, "monmap"];
        self.run("monmaptool", &map)?;
        self.home.make_folder("mon.a")?;
        let make = ["-i", "a", "--mkfs", "--monmap", "monmap", "--keyring", "keyring"];
        self.run("ceph-mon", &make).map(|_| ())
    }

    fn start(&self, name: &str, id: &str) -> Result<Leash, LabError> {
        let (program, log) = (
            self.programs.program(name),
            self.home.join(&format!("{name}.log")),
        );
        let mut start = Start::new(&program, &log, self.home.path());
        start.environment = self.environment();
        start.arguments = ["-i", id, "-f"].map(str::to_owned).to_vec();
        // There is nothing that it has to save.
        start.stop_signal = Signal::SIGKILL;
        Leash::start(start)
    }

    fn ceph(&self, arguments: &[&str]) -> Result<String, LabError> {
        // A monitor that has just started answers late, and a client waits for five minutes by itself.
        let arguments = [&["--connect-timeout", "60"], arguments].concat();
        finished(
            "ceph",
            command(
                &self.home.join("ceph"),
                &self.environment(),
                &arguments,
                self.home,
            )?,
        )
    }

    fn run(&self, name: &'static str, arguments: &[&str]) -> Result<String, LabError> {
        finished(name, self.output(name, arguments)?)
    }

    fn output(&self, name: &str, arguments: &[&str]) -> Result<Output, LabError> {
        command(
            &self.programs.program(name),
            &self.environment(),
            arguments,
            self.home,
        )
    }
}

fn command(
    program: &Path,
    environment: &[(&'static str, String)],
    arguments: &[&str],
    home: &Home,
) -> Result<Output, LabError> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home.path());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command
        .output()
        .during(|| format!("running {}", program.display()))
}

fn finished(program: &str, done: Output) -> Result<String, LabError> {
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let signal = done.status.signal().map(|signal| format!("signal {signal}; "));
    Err(LabError::Failed {
        program: program.to_owned(),
        output: signal.unwrap_or_default() + &tail(&done.stderr),
    })
}

fn configuration(home: &Home, port: u16, programs: &CephPrograms) -> String {
    let libraries = programs.libraries();
    let (libraries, home) = (libraries.display(), home.path().display());
    format!(
        "[global]\nfsid = {FSID}\nmon host = v2:127.0.0.1:{port}\npublic addr = 127.0.0.1\ncluster addr = 127.0.0.1\n\
         ms bind ipv6 = false\nauth allow insecure global id reclaim = false\nrun dir = {home}\nadmin socket =\npid file =\n\
         log file =\nlog to stderr = true\nmon cluster log file = /dev/null\ncrash dir = {home}\nkeyring = {home}/keyring\n\
         plugin dir = {libraries}/ceph\nerasure code dir = {libraries}/ceph/erasure-code\nosd class dir = {libraries}/rados-classes\n\
         osd pool default size = 1\nosd pool default min size = 1\nosd pool default pg autoscale mode = off\n\
         osd crush chooseleaf type = 0\nmon allow pool size one = true\nmon data = {home}/mon.a\nmon data avail crit = 1\n\
         mon data avail warn = 1\nosd objectstore = memstore\nmemstore device bytes = 268435456\nosd data = {home}/osd.0\n"
    )
}
