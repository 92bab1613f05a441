//! Pacemaker's fencer, which calls fence agents: in a cluster of one node with a topology, or without a cluster.

mod cluster;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::{Group, User, chown};

use crate::error::{During, LabError};
use crate::home::{Home, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::programs::find_program;
use cluster::Cluster;

const PACKAGE: &str = "pacemaker pacemaker-cli-utils";
const DAEMON: &str = "/usr/lib/pacemaker/pacemaker-fenced";
/// The folder of the fencer's sockets, which the package's own service makes when it starts.
const RUN: &str = "/run/crm";
/// The only folder in which the fencer looks for agents.
const AGENTS: &str = "/usr/sbin";
/// The file with the paths that the leash removes beside the home.
const OUTSIDE: &str = "outside";
const READY_LIMIT: Duration = Duration::from_secs(20);

/// A fencer. There can be one per machine, and only root can run it.
#[derive(Debug)]
pub struct Fencer {
    // Dropped in this order.
    leash: Leash,
    cluster: Option<Cluster>,
    admin: PathBuf,
    home: Home,
    /// Links to agents that the test has added.
    links: Vec<PathBuf>,
}

impl Fencer {
    /// Whether this process may run a fencer.
    #[must_use]
    pub fn is_allowed() -> bool {
        nix::unistd::geteuid().is_root()
    }

    /// Whether a fencer is installed, and this process may run it.
    #[must_use]
    pub fn is_installed() -> bool {
        Path::new(DAEMON).is_file() && find_program("stonith_admin").is_some() && Self::is_allowed()
    }

    /// Starts a fencer in a cluster of its own, without any device.
    ///
    /// # Errors
    /// If Pacemaker is not installed, or does not become ready within 20 s.
    pub fn start() -> Result<Self, LabError> {
        let home = Home::new("pcmk")?;
        let cluster = Cluster::start(&home)?;
        Self::start_in(home, Some(cluster))
    }

    /// Starts a fencer without a cluster, which uses any device that can fence a node: with the agent `fence_dummy` for the node `node1`, for
    /// comparison in benchmarks.
    ///
    /// # Errors
    /// As [`Fencer::start`].
    pub fn alone() -> Result<Self, LabError> {
        let fencer = Self::start_in(Home::new("pcmk")?, None)?;
        let file = fencer.dummy("power")?;
        let options = [("status_file", file.as_str()), ("pcmk_host_list", "node1")];
        fencer.register("d1", "fence_dummy", &options)?;
        Ok(fencer)
    }

    fn start_in(home: Home, cluster: Option<Cluster>) -> Result<Self, LabError> {
        let missing = |program| LabError::Missing {
            program,
            package: PACKAGE,
        };
        let admin = find_program("stonith_admin").ok_or_else(|| missing("stonith_admin"))?;
        make_run_folder()?;
        let log = home.join("fencer.log");
        let mut arguments = vec!["-l".to_owned(), home.text("fenced.log")];
        let mut environment = vec![
            ("PCMK_logfile", "none".to_owned()),
            ("PCMK_node_name", "lab".to_owned()),
        ];
        match cluster {
            Some(_) => environment.push(Cluster::environment(&home)),
            None => arguments.push("--stand-alone".to_owned()),
        }
        let leash = Leash::start(Start {
            arguments,
            environment,
            ..Start::new(DAEMON.as_ref(), &log, home.path())
        })?;
        let fencer = Self {
            leash,
            cluster,
            admin,
            home,
            links: Vec::new(),
        };
        wait_ready("Pacemaker's fencer", &fencer.leash, &log, READY_LIMIT, || {
            fencer.admin(&["--list-registered"]).is_ok()
        })?;
        Ok(fencer)
    }

    /// Fences `node1`, whose dummy is switched on first.
    ///
    /// # Errors
    /// If the fencer refuses.
    pub fn fence(&self) -> Result<Duration, LabError> {
        self.dummy("power")?;
        let begun = std::time::Instant::now();
        self.admin(&["--fence", "node1", "-t", "20"])?;
        Ok(begun.elapsed())
    }

    /// Writes the file of a `fence_dummy`, which reads as on; returns its path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn dummy(&self, name: &str) -> Result<String, LabError> {
        self.home.write(name, "on").map(|path| path.display().to_string())
    }

    /// Makes an agent known to the fencer until the fencer ends; returns the agent's name there, which is unique among fencers.
    ///
    /// # Errors
    /// If the link to the agent cannot be made.
    pub fn add_agent(&mut self, agent: &Path) -> Result<String, LabError> {
        let name = |path: &Path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let run = name(self.home.path()).replace('-', "_");
        let linked = format!("{}_{run}", name(agent));
        let link = Path::new(AGENTS).join(&linked);
        self.links.push(link.clone());
        // The path is noted before the link is made, so that the link is removed in any case.
        let all = self.links.iter().map(|link| format!("{}\n", link.display()));
        self.home.write(OUTSIDE, &all.collect::<String>())?;
        std::os::unix::fs::symlink(agent, &link).during(|| format!("making {}", link.display()))?;
        Ok(linked)
    }

    /// Registers a device: an agent with the agent's and Pacemaker's parameters.
    ///
    /// # Errors
    /// If the fencer refuses.
    pub fn register(&self, device: &str, agent: &str, options: &[(&str, &str)]) -> Result<(), LabError> {
        if let Some(cluster) = &self.cluster {
            cluster.add_device(&self.home, device, agent, options)?;
        }
        let options: Vec<_> = options
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut words = vec!["-R", device, "-a", agent];
        words.extend(options.iter().flat_map(|option| ["-o", option]));
        self.admin(&words).map(|_| ())
    }

    /// Adds a level to a node's topology: its devices, one after the other.
    ///
    /// # Errors
    /// If the fencer refuses.
    pub fn level(&self, node: &str, level: u32, devices: &[&str]) -> Result<(), LabError> {
        if let Some(cluster) = &self.cluster {
            cluster.add_level(&self.home, node, level, devices)?;
        }
        let level = level.to_string();
        let mut words = vec!["-r", node, "-i", &level];
        words.extend(devices.iter().flat_map(|device| ["-v", device]));
        self.admin(&words).map(|_| ())
    }

    /// Runs `stonith_admin`, and returns its output.
    ///
    /// # Errors
    /// If it ends with an error, as it does after a failed fence.
    pub fn admin(&self, words: &[&str]) -> Result<String, LabError> {
        let done = Command::new(&self.admin)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .during(|| format!("running {}", self.admin.display()))?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(LabError::Failed {
            program: self.admin.display().to_string(),
            output: tail(&[done.stdout, done.stderr].concat()),
        })
    }

    /// The fencer's log, which includes the agents' standard error.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("fenced.log")).unwrap_or_default()
    }
}

impl Drop for Fencer {
    fn drop(&mut self) {
        for link in &self.links {
            // A link that could not be made need not be removed.
            let _ = std::fs::remove_file(link);
        }
    }
}

fn make_run_folder() -> Result<(), LabError> {
    let doing = || format!("making {RUN}");
    std::fs::create_dir_all(RUN).during(doing)?;
    let user = User::from_name("hacluster").during(doing)?.map(|user| user.uid);
    let group = Group::from_name("haclient").during(doing)?.map(|group| group.gid);
    chown(RUN, user, group).during(doing)
}
