//! Pacemaker's fencer alone, with one agent that needs no device: something to measure beside.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{Group, User, chown};

use crate::error::{During, LabError};
use crate::home::{Home, tail, wait_ready};
use crate::leash::{Leash, Start};
use crate::programs::find_program;

const PACKAGE: &str = "pacemaker pacemaker-cli-utils";
const DAEMON: &str = "/usr/lib/pacemaker/pacemaker-fenced";
/// Where the fencer has its sockets; the package's own service makes this folder when it starts.
const RUN: &str = "/run/crm";
const READY_LIMIT: Duration = Duration::from_secs(20);

/// A stand-alone fencer with the agent `fence_dummy` for the node `node1`. There can be one per machine, and only root can run it.
#[derive(Debug)]
pub struct Fencer {
    _leash: Leash,
    admin: PathBuf,
    home: Home,
}

impl Fencer {
    /// Whether it is there, and this process may run it.
    #[must_use]
    pub fn is_installed() -> bool {
        std::path::Path::new(DAEMON).is_file()
            && find_program("stonith_admin").is_some()
            && nix::unistd::geteuid().is_root()
    }

    /// Starts it.
    ///
    /// # Errors
    /// Pacemaker is not installed, or does not become ready within 20 s.
    pub fn start() -> Result<Self, LabError> {
        let missing = |program| LabError::Missing {
            program,
            package: PACKAGE,
        };
        let admin = find_program("stonith_admin").ok_or_else(|| missing("stonith_admin"))?;
        make_run_folder()?;
        let home = Home::new("pcmk")?;
        let log = home.join("fencer.log");
        let leash = Leash::start(Start {
            program: DAEMON.as_ref(),
            arguments: vec![
                "--stand-alone".to_owned(),
                "-l".to_owned(),
                home.text("fenced.log"),
            ],
            environment: vec![
                ("PCMK_logfile", "none".to_owned()),
                ("PCMK_node_name", "lab".to_owned()),
            ],
            without: &[],
            stop_signal: Signal::SIGTERM,
            log: &log,
            home: home.path(),
            user: None,
        })?;
        let fencer = Self {
            _leash: leash,
            admin,
            home,
        };
        fencer.switch_on()?;
        wait_ready("Pacemaker's fencer", &fencer._leash, &log, READY_LIMIT, || {
            fencer.register().is_ok()
        })?;
        Ok(fencer)
    }

    /// Fences `node1`, which is switched on first.
    ///
    /// # Errors
    /// The fencer refuses.
    pub fn fence(&self) -> Result<Duration, LabError> {
        self.switch_on()?;
        let begun = std::time::Instant::now();
        self.admin(&["--fence", "node1", "-t", "20"])?;
        Ok(begun.elapsed())
    }

    fn switch_on(&self) -> Result<(), LabError> {
        self.home.write("power", "on").map(|_| ())
    }

    fn register(&self) -> Result<(), LabError> {
        let file = format!("status_file={}", self.home.text("power"));
        let words = [
            "-R",
            "d1",
            "-a",
            "fence_dummy",
            "-o",
            &file,
            "-o",
            "pcmk_host_list=node1",
        ];
        self.admin(&words)
    }

    fn admin(&self, words: &[&str]) -> Result<(), LabError> {
        let done = Command::new(&self.admin)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .during(|| format!("running {}", self.admin.display()))?;
        if done.status.success() {
            return Ok(());
        }
        Err(LabError::Failed {
            program: self.admin.display().to_string(),
            output: tail(&[done.stdout, done.stderr].concat()),
        })
    }
}

fn make_run_folder() -> Result<(), LabError> {
    let doing = || format!("making {RUN}");
    std::fs::create_dir_all(RUN).during(doing)?;
    let user = User::from_name("hacluster").during(doing)?.map(|user| user.uid);
    let group = Group::from_name("haclient").during(doing)?.map(|group| group.gid);
    chown(RUN, user, group).during(doing)
}
