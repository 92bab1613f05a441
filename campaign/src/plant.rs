//! The installed service on one ground, with the devices of the simulated hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringfence_tests::{Client, Machine, set_up};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::{MachineClock, SiteClock, library};
use crate::error::CampaignError;
use crate::log::Log;
use crate::options::Ground;
use crate::peers::Peers;
use crate::process::Process;
use crate::proxy::Proxy;

/// Time between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A running service. It ends when the value is dropped.
pub struct Plant {
    /// The database and the broker of the distributed ground.
    pub peers: Option<Peers>,
    pub processes: Vec<Process>,
    /// One client of each API, with the role `admin`.
    pub clients: Vec<Client>,
    /// The folder of the processes' logs.
    pub home: PathBuf,
    machine: Machine,
    /// The folder of files that the machine's settings name.
    _settings: Machine,
}

impl Plant {
    /// Starts the service.
    pub async fn start(
        ground: Ground,
        devices: &str,
        folder: &Path,
        clock: &SiteClock,
    ) -> Result<Self, CampaignError> {
        match ground {
            Ground::Standalone => Self::standalone(devices, folder, clock).await,
            Ground::Distributed => Self::distributed(devices, folder, clock).await,
        }
    }

    async fn standalone(devices: &str, folder: &Path, clock: &SiteClock) -> Result<Self, CampaignError> {
        let settings = Machine::new();
        let machine = machine(&settings, devices, folder)?;
        let words = ["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"];
        let mut process = process("standalone", &words, folder, clock)?;
        process.front = Some(("ready", Proxy::to(None).await?));
        let mut plant = Self {
            peers: None,
            processes: vec![process],
            clients: Vec::new(),
            home: machine.path().to_owned(),
            machine,
            _settings: settings,
        };
        let token = plant.home.join("data/admin.token");
        let token = plant.wait_for(&token).await?;
        plant.clients = plant.callers(token.trim());
        Ok(plant)
    }

    async fn distributed(devices: &str, folder: &Path, clock: &SiteClock) -> Result<Self, CampaignError> {
        let (peers, site) = Peers::start().await?;
        let (settings, token) = set_up(&site).await;
        let peers = peers.with(site).await?;
        let machine = machine(&settings, devices, folder)?;
        let mut processes = Vec::new();
        for (kind, ready) in [
            ("api", Some("the API listens")),
            ("engine", None),
            ("worker", None),
        ] {
            for number in 1..=2 {
                let name = format!("{kind}-{number}");
                let words = match ready {
                    Some(_) => [kind, "--listen", "127.0.0.1:0"],
                    None => [kind, "--name", name.as_str()],
                };
                let mut process = process(&name, &words, folder, clock)?;
                if let Some(ready) = ready {
                    process.front = Some((ready, Proxy::to(None).await?));
                }
                peers.join(&mut process).await?;
                processes.push(process);
            }
        }
        let mut plant = Self {
            peers: Some(peers),
            processes,
            clients: Vec::new(),
            home: machine.path().to_owned(),
            machine,
            _settings: settings,
        };
        plant.clients = plant.callers(&token);
        Ok(plant)
    }

    fn callers(&self, token: &str) -> Vec<Client> {
        let fronts = self.processes.iter().filter_map(|process| process.front.as_ref());
        let caller =
            |(_, front): &(_, Proxy)| Client::new(&format!("http://{}", front.address()), Some(token));
        fronts.map(caller).collect()
    }

    async fn wait_for(&self, file: &Path) -> Result<String, CampaignError> {
        let log = Log::new(&self.home)?;
        for _ in 0..600 {
            self.look(&log);
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => return Ok(text),
                Ok(_) | Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
        Err(CampaignError::Unexpected {
            what: format!("the start of the service, which makes {}", file.display()),
            found: "nothing".to_owned(),
        })
    }

    /// Does everything that is due for the processes.
    pub fn look(&self, log: &Log) {
        for process in &self.processes {
            process.look(&self.machine, log);
        }
    }

    /// Looks after the processes until the returned handle is dropped.
    pub fn keep(self: &Arc<Self>, log: &Arc<Log>) -> AbortOnDropHandle<()> {
        let (plant, log) = (Arc::clone(self), Arc::clone(log));
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                plant.look(&log);
                sleep(LOOK_EVERY).await;
            }
        }))
    }

    /// Sets the machines' clocks after the site's clock.
    pub fn follow(&self, clock: &SiteClock) -> Result<(), CampaignError> {
        self.processes
            .iter()
            .try_for_each(|process| process.clock.follow(clock))
    }

    /// Ends the faults of all processes and connections.
    pub fn heal(&self) {
        self.processes.iter().for_each(Process::heal);
    }

    /// Ends every process.
    pub fn end(&self) {
        self.processes.iter().for_each(Process::end);
    }
}

/// Ignores SIGXFSZ, so that a file's size limit fails the write instead of ending the process.
fn machine(settings: &Machine, devices: &str, folder: &Path) -> Result<Machine, CampaignError> {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("ringfence");
    let cannot = || CampaignError::system(format!("write {}", path.display()));
    let program = Machine::program();
    let text = format!("#!/bin/sh\ntrap '' XFSZ\nexec '{}' \"$@\"\n", program.display());
    std::fs::write(&path, text).map_err(cannot())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(cannot())?;
    let machine = Machine::with_build(settings, path);
    Ok(machine
        .set("RINGFENCE_WORKER_SIMULATOR_URL", devices)
        .set("RINGFENCE_API_REQUESTS_PER_SECOND", "0"))
}

fn process(name: &str, words: &[&str], folder: &Path, clock: &SiteClock) -> Result<Process, CampaignError> {
    let machine_clock = MachineClock::new(folder.join(format!("{name}.clock")));
    machine_clock.follow(clock)?;
    let variables = machine_clock.variables(&library()?);
    Ok(Process::new(name, words, variables, machine_clock))
}
