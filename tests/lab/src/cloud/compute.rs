//! A test's own hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;

use crate::cloud::domains::{self, since_epoch};
use crate::cloud::wait::POLL;
use crate::cloud::{Api, Change, Cloud, Domain};
use crate::error::{During, LabError};
use crate::home::{Home, wait_ready};
use crate::leash::Leash;
use crate::openstack::program::Program;

const READY_LIMIT: Duration = Duration::from_secs(120);
/// A new host has been up for so long, so that its first boot under a test's eyes shows in its uptime, which has minutes only.
const UP_BEFORE: Duration = Duration::from_secs(3 * 24 * 3600);

/// A host: a real nova-compute with a driver that keeps its guests in files, and a network agent.
///
/// Dropping it removes it from the cloud, with every server that is on it, as far as that can be done.
#[derive(Debug)]
pub struct Compute {
    name: String,
    cloud: Cloud,
    leash: Option<Leash>,
    /// When Nova last heard of it before it was started; its record says no more.
    heard_before: Option<String>,
    is_removed: bool,
    home: Home,
}

impl Cloud {
    /// Starts a host of this name, which nobody else may use, and does not wait for it.
    ///
    /// # Errors
    /// Nova is not installed, or its files cannot be written.
    pub fn compute(&self, name: &str) -> Result<Compute, LabError> {
        let mut compute = Compute {
            name: name.to_owned(),
            cloud: self.clone(),
            leash: None,
            heard_before: None,
            is_removed: false,
            home: Home::new("compute")?,
        };
        compute.configure()?;
        compute.set_boot_time(now() - UP_BEFORE)?;
        compute.start_again()?;
        Ok(compute)
    }

    /// Starts hosts of these names and waits until all can be used.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), or one does not become ready within two minutes.
    pub fn computes<const N: usize>(&self, names: [&str; N]) -> Result<[Compute; N], LabError> {
        let mut computes = Vec::with_capacity(N);
        for name in names {
            computes.push(self.compute(name)?);
        }
        for compute in &computes {
            compute.wait_ready()?;
        }
        computes.try_into().map_err(|_| LabError::NotSeen {
            what: format!("starting {N} computes"),
            seconds: 0,
            seen: "fewer".to_owned(),
        })
    }

    /// Removes a host with all that is on it.
    ///
    /// # Errors
    /// A service cannot be reached or refuses.
    pub fn remove(&self, mut compute: Compute) -> Result<(), LabError> {
        compute.take_away()
    }
}

impl Compute {
    /// Its name, for Nova and for Neutron.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Whether nova-compute runs, or hangs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.leash.as_ref().is_some_and(Leash::is_running)
    }

    /// Ends nova-compute at once. The guests run on, and so does the network agent.
    pub fn kill(&mut self) {
        if let Some(mut leash) = self.leash.take() {
            leash.crash();
        }
    }

    /// Ends nova-compute in good order. The guests run on.
    pub fn stop(&mut self) {
        self.leash = None;
    }

    /// Starts nova-compute where it does not run. The host has not booted meanwhile.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        if self.is_running() {
            return Ok(());
        }
        self.heard_before = self.last_heard();
        self.set_agent(true)?;
        let description = self.cloud.description();
        let leash = Program::script(&description.folder, "compute.py")
            .configured([description.etc("nova.conf"), self.home.text("nova-compute.conf")])
            .start(&self.log_file(), self.home.path())?;
        self.leash = Some(leash);
        Ok(())
    }

    /// Makes the host hang: nova-compute and the network agent stand still, and the guests run on as they do in a half-dead host.
    ///
    /// # Errors
    /// The signal could not be sent.
    pub fn pause(&self) -> Result<(), LabError> {
        self.set_agent(false)?;
        self.signal(Signal::SIGSTOP)
    }

    /// Lets a host that hangs go on.
    ///
    /// # Errors
    /// The signal could not be sent.
    pub fn resume(&self) -> Result<(), LabError> {
        self.set_agent(true)?;
        self.signal(Signal::SIGCONT)
    }

    /// From now on the driver does not come back from starting a guest, for five minutes or until it is released.
    ///
    /// # Errors
    /// The file that says so cannot be written.
    pub fn hold_spawns(&self) -> Result<(), LabError> {
        let file = self.state().join("hold");
        std::fs::write(&file, "").during(|| format!("writing {}", file.display()))
    }

    /// Lets the driver come back from what it has started.
    ///
    /// # Errors
    /// The file that holds it cannot be removed.
    pub fn release_spawns(&self) -> Result<(), LabError> {
        let file = self.state().join("hold");
        std::fs::remove_file(&file).during(|| format!("removing {}", file.display()))
    }

    /// Cuts the host's power: nova-compute, the network agent and every guest are off at once, and stay so.
    ///
    /// # Errors
    /// The guests' file cannot be written.
    pub fn power_off(&mut self) -> Result<(), LabError> {
        self.kill();
        self.set_agent(false)?;
        domains::stop_all(&self.state(), now())
    }

    /// Boots the host anew. Guests stay off until somebody starts them.
    ///
    /// # Errors
    /// nova-compute cannot be started.
    pub fn power_on(&mut self) -> Result<(), LabError> {
        self.set_boot_time(now())?;
        self.start_again()
    }

    /// The guests that are on the host, by their servers' ids.
    ///
    /// # Errors
    /// The driver's file cannot be read.
    pub fn domains(&self) -> Result<BTreeMap<String, Domain>, LabError> {
        domains::read(&self.state())
    }

    /// Whether this guest runs here, whatever Nova believes.
    ///
    /// # Errors
    /// The driver's file cannot be read.
    pub fn runs(&self, server: &str) -> Result<bool, LabError> {
        Ok(self.domains()?.get(server).is_some_and(|domain| domain.running))
    }

    /// All that was done to guests on the host, the oldest first.
    ///
    /// # Errors
    /// The driver's file cannot be read.
    pub fn history(&self) -> Result<Vec<Change>, LabError> {
        domains::read_history(&self.state())
    }

    /// Waits for a heartbeat that is newer than the last start; the service may be forced down.
    ///
    /// # Errors
    /// There is none within two minutes, or nova-compute has ended.
    pub fn wait_heard(&self) -> Result<(), LabError> {
        self.wait(|| self.is_heard())
    }

    /// Waits until Nova and Placement take the host for ready: heard since its start, up, in a cell, with an inventory.
    ///
    /// # Errors
    /// That takes more than two minutes, or nova-compute has ended.
    pub fn wait_ready(&self) -> Result<(), LabError> {
        self.wait(|| self.is_heard() && self.is_ready().unwrap_or(false))
    }

    fn wait(&self, is_ready: impl Fn() -> bool) -> Result<(), LabError> {
        let Some(leash) = &self.leash else {
            return Err(LabError::NotSeen {
                what: format!("readiness of {}", self.name),
                seconds: 0,
                seen: "it does not run".to_owned(),
            });
        };
        wait_ready("nova-compute", leash, &self.log_file(), READY_LIMIT, || {
            std::thread::sleep(POLL);
            is_ready()
        })
    }

    fn is_heard(&self) -> bool {
        let heard = self.last_heard();
        heard.is_some() && heard != self.heard_before
    }

    fn last_heard(&self) -> Option<String> {
        let service = self.cloud.find_compute_service(&self.name);
        service.ok().flatten().and_then(|service| service.updated_at)
    }

    fn is_ready(&self) -> Result<bool, LabError> {
        let service = self.cloud.compute_service(&self.name)?;
        // Nova counts only those hosts among its hypervisors that are in a cell.
        Ok(service.is_up() && self.cloud.hypervisor(&self.name)?.is_some() && self.has_inventory()?)
    }

    fn has_inventory(&self) -> Result<bool, LabError> {
        let Some(provider) = self.cloud.provider(&self.name)? else {
            return Ok(false);
        };
        let answer = self.cloud.get(
            Api::Placement,
            &format!("/resource_providers/{provider}/inventories"),
        )?;
        Ok(answer["inventories"]
            .as_object()
            .is_some_and(|all| !all.is_empty()))
    }

    fn take_away(&mut self) -> Result<(), LabError> {
        self.is_removed = true;
        self.kill();
        self.set_agent(false)?;
        self.cloud.forget_host(&self.name)
    }

    fn configure(&self) -> Result<(), LabError> {
        let state = self.home.make_folder("state")?;
        let (name, state, lock) = (&self.name, state.display(), self.home.text("lock"));
        let text = format!(
            "[DEFAULT]\nhost = {name}\nstate_path = {state}\n[oslo_concurrency]\nlock_path = {lock}\n"
        );
        self.home.write("nova-compute.conf", &text).map(|_| ())
    }

    fn signal(&self, signal: Signal) -> Result<(), LabError> {
        self.leash.as_ref().map_or(Ok(()), |leash| leash.signal(signal))
    }

    fn set_boot_time(&self, moment: SystemTime) -> Result<(), LabError> {
        let seconds = since_epoch(moment).as_secs_f64();
        self.home
            .write("state/boot_time", &format!("{seconds:.3}"))
            .map(|_| ())
    }

    /// Whether Neutron hears of an agent on the host.
    fn set_agent(&self, alive: bool) -> Result<(), LabError> {
        let file = self.cloud.description().folder.join("agents").join(&self.name);
        if alive {
            return std::fs::write(&file, "").during(|| format!("writing {}", file.display()));
        }
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).during(|| format!("removing {}", file.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn state(&self) -> PathBuf {
        self.home.join("state")
    }

    fn log_file(&self) -> PathBuf {
        self.home.join("nova-compute.log")
    }
}

impl Drop for Compute {
    fn drop(&mut self) {
        if !self.is_removed {
            // The test has failed, or does not care: a host that is left must at least not be given work.
            let _ = self.take_away();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what befalls a real process has a real time"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
