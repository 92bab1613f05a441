//! A real Ceph on loopback: one monitor, OSDs that keep their objects in memory, and clients that write.
//!
//! There is a manager only where placement groups are counted: neither objects nor blocklists need it.

mod images;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

pub use self::images::CephClient;
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
const MANAGER: &str = "mgr.x";
/// The users with their rights, beside those of OSDs.
const USERS: [(&str, &[(&str, &str)]); 5] = [
    ("mon.", &[("mon", "allow *")]),
    (
        ADMIN,
        &[("mon", "allow *"), ("osd", "allow *"), ("mgr", "allow *")],
    ),
    (MANAGER, &[("mon", "allow profile mgr"), ("osd", "allow *")]),
    // For a driver that fences: it sees the cluster, and acts on the blocklist alone.
    (
        Ceph::FENCING_USER,
        &[
            ("mon", "allow r, allow command \"osd blocklist\""),
            ("mgr", "allow r"),
        ],
    ),
    // For a driver that reads who has an image open.
    (
        Ceph::READING_USER,
        &[("mon", "allow r"), ("osd", "allow r pool=volumes")],
    ),
];

/// Where the programs are: a folder with the content of Debian's packages.
#[derive(Clone, Debug)]
pub struct CephPrograms {
    root: PathBuf,
}

impl CephPrograms {
    /// The names of the programs.
    pub const NAMES: [&str; 8] = [
        "ceph",
        "ceph-authtool",
        "ceph-mgr",
        "ceph-mon",
        "ceph-osd",
        "monmaptool",
        "rados",
        "rbd",
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
    osds: Vec<Option<Leash>>,
    manager: Option<Leash>,
    monitor: Leash,
    programs: CephPrograms,
    port: u16,
    home: Home,
}

impl Ceph {
    /// The user that may read and change the blocklist.
    pub const FENCING_USER: &str = "client.ringfence";
    /// The user that may read the pool and change nothing.
    pub const READING_USER: &str = "client.heartbeats";
    /// The pool.
    pub const POOL: &str = POOL;
    /// Seconds after which an OSD drops a watch that is not renewed; clients renew one every 5 s.
    pub const WATCH_TIMEOUT_S: &str = "8";
    /// The address of all clients.
    pub const ADDRESS: &str = "127.0.0.1";

    /// Starts a cluster with one OSD and waits until it takes writes.
    ///
    /// # Errors
    /// If a program is missing, or the cluster does not take a write within a minute.
    pub fn start(programs: &CephPrograms) -> Result<Self, LabError> {
        let cluster = Self::without_pool(programs, &["here"])?;
        cluster.ceph(&["osd", "pool", "create", POOL, "1"])?;
        cluster.until_written("first")?;
        Ok(cluster)
    }

    /// Starts a cluster with an OSD on each of these hosts, and a manager. Its pool has a copy on each host, and takes writes with all of them but one. Waits until all
    /// placement groups are active and clean.
    ///
    /// # Errors
    /// If a program is missing, or they are not within a minute.
    pub fn start_on(programs: &CephPrograms, hosts: &[&str]) -> Result<Self, LabError> {
        let mut cluster = Self::without_pool(programs, hosts)?;
        cluster.home.make_folder(MANAGER)?;
        cluster.manager = Some(cluster.tools().start("ceph-mgr", "x", &[])?);
        cluster.ceph(&["osd", "pool", "create", POOL, "8"])?;
        cluster.until_written("first")?;
        cluster.until("all placement groups are active and clean", Self::is_clean)?;
        Ok(cluster)
    }

    fn without_pool(programs: &CephPrograms, hosts: &[&str]) -> Result<Self, LabError> {
        let home = Home::new("ceph")?;
        let port = free_tcp_port()?;
        home.write("ceph.conf", &configuration(&home, port, programs, hosts.len()))?;
        home.write(
            "client.conf",
            &format!("[global]\nmon host = v2:127.0.0.1:{port}\n"),
        )?;
        let tools = Tools {
            programs,
            home: &home,
        };
        tools.write_programs()?;
        // One OSD can be added.
        tools.make_keyring(hosts.len() + 1)?;
        tools.make_monitor(port)?;
        let monitor = tools.start("ceph-mon", "a", &[])?;
        wait_ready(
            "ceph-mon",
            &monitor,
            &home.join("ceph-mon-a.log"),
            READY_LIMIT,
            || is_open(port),
        )?;
        let mut osds = Vec::new();
        for (id, host) in hosts.iter().enumerate() {
            osds.push(Some(tools.make_osd(id, host)?));
        }
        Ok(Self {
            osds,
            manager: None,
            monitor,
            programs: programs.clone(),
            port,
            home,
        })
    }

    /// Kills an OSD, as its host's end would. What it had in memory is gone.
    pub fn kill_osd(&mut self, id: usize) {
        self.osds[id] = None;
    }

    /// Adds an OSD on a host, as where those of a lost host are made anew, and marks the lost one as out. Waits until all placement groups are active and clean.
    ///
    /// # Errors
    /// If a program fails, or they are not within a minute.
    pub fn replace_osd(&mut self, lost: usize, host: &str) -> Result<(), LabError> {
        let osd = self.tools().make_osd(self.osds.len(), host)?;
        self.osds.push(Some(osd));
        self.ceph(&["osd", "out", &lost.to_string()])?;
        self.until("all placement groups are active and clean", Self::is_clean)
    }

    /// Whether Ceph sees the OSD down.
    ///
    /// # Errors
    /// If `ceph` fails.
    pub fn is_down(&self, osd: usize) -> Result<bool, LabError> {
        let told = self.ceph(&["osd", "dump"])?;
        let name = format!("osd.{osd} down");
        Ok(told.lines().any(|line| line.starts_with(&name)))
    }

    /// Whether all placement groups are active and clean.
    ///
    /// # Errors
    /// If `ceph` fails.
    pub fn is_clean(&self) -> Result<bool, LabError> {
        let groups = self.ceph(&["pg", "dump", "pgs_brief"])?;
        let mut states = groups
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
            .peekable();
        Ok(states.peek().is_some() && states.all(|line| line.contains("active+clean")))
    }

    /// Makes the manager accept connections and answer nothing.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn silence_manager(&self) -> Result<(), LabError> {
        self.manager
            .iter()
            .try_for_each(|manager| manager.signal(Signal::SIGSTOP))
    }

    /// Makes a silenced manager answer again.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn wake_manager(&self) -> Result<(), LabError> {
        self.manager
            .iter()
            .try_for_each(|manager| manager.signal(Signal::SIGCONT))
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

    /// A file with the keyring of the user that reads.
    ///
    /// # Errors
    /// If the cluster does not tell it, or it cannot be written.
    pub fn reading_keyring_file(&self) -> Result<PathBuf, LabError> {
        let keyring = self.ceph(&["auth", "get", Self::READING_USER])?;
        self.home.write("heartbeats.keyring", &keyring)
    }

    /// A file with the keyring of the user that fences.
    ///
    /// # Errors
    /// If the cluster does not tell it, or it cannot be written.
    pub fn keyring_file(&self) -> Result<PathBuf, LabError> {
        self.home.write("ringfence.keyring", &self.keyring()?)
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
        self.until("a write is taken", |cluster| cluster.writes(object))
    }

    fn until(
        &self,
        what: &'static str,
        is_so: impl Fn(&Self) -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let begun = Instant::now();
        while begun.elapsed() < READY_LIMIT && self.osds.iter().flatten().all(Leash::is_running) {
            if is_so(self)? {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        let log = self.home.join("ceph-osd-0.log");
        Err(LabError::NotReady {
            peer: what,
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
        let _ = self.wake_manager();
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

    /// Programs that run in any environment, and a client that keeps an image open until it is killed: `rbd watch` ends with its input.
    fn write_programs(&self) -> Result<(), LabError> {
        let variables = self.programs.environment();
        let set: String = variables
            .iter()
            .map(|(name, value)| format!("{name}='{value}' "))
            .collect();
        let path = |name| self.programs.program(name).display().to_string();
        let (ceph, rados, rbd) = (path("ceph"), path("rados"), path("rbd"));
        let scripts = [
            ("ceph", format!("{set}exec /usr/bin/python3 {ceph} \"$@\"")),
            ("rados", format!("{set}exec {rados} \"$@\"")),
            (
                "rbd-watch",
                format!("mkfifo input.$$\nexec {rbd} watch \"$1\" <>input.$$"),
            ),
        ];
        scripts.iter().try_for_each(|(name, script)| {
            self.home
                .write_script(name, &format!("#!/bin/sh\n{script}\n"))
                .map(|_| ())
        })
    }

    fn make_keyring(&self, osds: usize) -> Result<(), LabError> {
        self.home.write("keyring", "")?;
        let osds: Vec<String> = (0..osds).map(|id| format!("osd.{id}")).collect();
        let of_osds: &[_] = &[
            ("mon", "allow profile osd"),
            ("mgr", "allow profile osd"),
            ("osd", "allow *"),
        ];
        let of_osds = osds.iter().map(|name| (name.as_str(), of_osds));
        for (user, rights) in USERS.into_iter().chain(of_osds) {
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

    /// Its host has a name of its own, which an OSD in a container is told so.
    fn make_osd(&self, id: usize, host: &str) -> Result<Leash, LabError> {
        let uuid = format!("5bca1b2e-6a50-4c0b-a4b1-2a7c2f1a6c{id:02}");
        self.ceph(&["osd", "new", &uuid])?;
        self.home.make_folder(&format!("osd.{id}"))?;
        let number = id.to_string();
        self.run("ceph-osd", &["-i", &number, "--mkfs", "--osd-uuid", &uuid])?;
        let of_pod = [
            ("POD_NAME", "rook-ceph-osd"),
            ("NODE_NAME", host),
            ("CEPH_ARGS", &format!("--crush-location=root=default,host={host}")),
        ];
        self.start("ceph-osd", &number, &of_pod)
    }

    fn start(&self, name: &str, id: &str, variables: &[(&'static str, &str)]) -> Result<Leash, LabError> {
        let (program, log) = (
            self.programs.program(name),
            self.home.join(&format!("{name}-{id}.log")),
        );
        let mut start = Start::new(&program, &log, self.home.path());
        start.environment = self.environment();
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        start.environment.extend(variables);
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

fn configuration(home: &Home, port: u16, programs: &CephPrograms, copies: usize) -> String {
    let libraries = programs.libraries();
    let modules = programs.root.join("usr/share/ceph/mgr");
    let modules = modules.display();
    let least = (copies - 1).max(1);
    let (libraries, home) = (libraries.display(), home.path().display());
    let watch_timeout = Ceph::WATCH_TIMEOUT_S;
    format!(
        "[global]\nfsid = {FSID}\nmon host = v2:127.0.0.1:{port}\npublic addr = 127.0.0.1\ncluster addr = 127.0.0.1\n\
         ms bind ipv6 = false\nauth allow insecure global id reclaim = false\nrun dir = {home}\nadmin socket =\npid file =\n\
         log file =\nlog to stderr = true\nmon cluster log file = /dev/null\ncrash dir = {home}\nkeyring = {home}/keyring\n\
         plugin dir = {libraries}/ceph\nerasure code dir = {libraries}/ceph/erasure-code\nosd class dir = {libraries}/rados-classes\n\
         osd pool default size = {copies}\nosd pool default min size = {least}\nosd pool default pg autoscale mode = off\n\
         osd crush chooseleaf type = 1\nmon allow pool size one = true\nmon data = {home}/mon.a\nmon data avail crit = 1\n\
         mon data avail warn = 1\nosd objectstore = memstore\nmemstore device bytes = 268435456\nosd data = {home}/osd.$id\n\
         osd heartbeat interval = 1\nosd heartbeat grace = 4\nosd client watch timeout = {watch_timeout}\nmon osd min down reporters = 1\n\
         mgr data = {home}/mgr.$id\nmgr module path = {modules}\nmgr initial modules =\n"
    )
}
