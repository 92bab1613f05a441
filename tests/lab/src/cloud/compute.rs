//! Hosts of one test.

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
/// The uptime of a new host, so that its first boot during a test shows in the uptime, which counts only minutes.
const UP_BEFORE: Duration = Duration::from_secs(3 * 24 * 3600);

/// A host: a real nova-compute with a driver that keeps its guests in files, and a network agent.
///
/// Dropping the value removes the host from the cloud, with every server on it, as far as possible.
#[derive(Debug)]
pub struct Compute {
    name: String,
    cloud: Cloud,
    leash: Option<Leash>,
    /// Nova's last heartbeat of the host before the last start.
    heard_before: Option<String>,
    /// Seconds from its next start to its first sign of life.
    first_sign_s: u32,
    is_removed: bool,
    home: Home,
}

impl Cloud {
    /// Starts a host with a name that no other test uses, and does not wait for it.
    ///
    /// # Errors
    /// If Nova is not installed, or its files cannot be written.
    pub fn compute(&self, name: &str) -> Result<Compute, LabError> {
        let mut compute = Compute {
            name: name.to_owned(),
            cloud: self.clone(),
            leash: None,
            heard_before: None,
            first_sign_s: 1,
            is_removed: false,
            home: Home::new("compute")?,
        };
        compute.configure()?;
        compute.set_boot_time(now() - UP_BEFORE)?;
        compute.start_again()?;
        Ok(compute)
    }

    /// Starts hosts with these names and waits until all can be used.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), or if a host does not become ready within two minutes.
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

    /// Removes a host and every server on it.
    ///
    /// # Errors
    /// If a service cannot be reached or refuses.
    pub fn remove(&self, mut compute: Compute) -> Result<(), LabError> {
        compute.take_away()
    }
}

impl Compute {
    /// The host's name in Nova and Neutron.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The log of nova-compute so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Whether nova-compute runs or hangs, and has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.leash.as_ref().is_some_and(Leash::is_running)
    }

    /// Kills nova-compute. The guests and the network agent go on running.
    pub fn kill(&mut self) {
        if let Some(mut leash) = self.leash.take() {
            leash.crash();
        }
    }

    /// Stops nova-compute in order. The guests go on running.
    pub fn stop(&mut self) {
        self.leash = None;
    }

    /// Starts nova-compute if it does not run. The host's boot stays the one before.
    ///
    /// # Errors
    /// If nova-compute cannot be started.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        if self.is_running() {
            return Ok(());
        }
        self.heard_before = self.last_heard();
        self.set_agent(true)?;
        let description = self.cloud.description();
        let leash = Program::script(&description.folder, "compute.py")
            .with("FIRST_SIGN_S", self.first_sign_s.to_string())
            .configured([description.etc("nova.conf"), self.home.text("nova-compute.conf")])
            .start(&self.log_file(), self.home.path())?;
        self.leash = Some(leash);
        Ok(())
    }

    /// Makes the host hang: nova-compute and the network agent stand still, and the guests go on running.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn pause(&self) -> Result<(), LabError> {
        self.set_agent(false)?;
        self.signal(Signal::SIGSTOP)
    }

    /// Ends a hang of the host.
    ///
    /// # Errors
    /// If the signal could not be sent.
    pub fn resume(&self) -> Result<(), LabError> {
        self.set_agent(true)?;
        self.signal(Signal::SIGCONT)
    }

    /// From now on the driver's call that starts a guest does not return, for five minutes or until `release_spawns`.
    ///
    /// # Errors
    /// If the file that holds the driver cannot be written.
    pub fn hold_spawns(&self) -> Result<(), LabError> {
        let file = self.state().join("hold");
        std::fs::write(&file, "").during(|| format!("writing {}", file.display()))
    }

    /// Lets held calls of the driver return.
    ///
    /// # Errors
    /// If the file that holds the driver cannot be removed.
    pub fn release_spawns(&self) -> Result<(), LabError> {
        let file = self.state().join("hold");
        std::fs::remove_file(&file).during(|| format!("removing {}", file.display()))
    }

    /// Cuts the host's power: nova-compute, the network agent and every guest end at once, and stay off.
    ///
    /// # Errors
    /// If the guests' file cannot be written.
    pub fn power_off(&mut self) -> Result<(), LabError> {
        self.kill();
        self.set_agent(false)?;
        domains::stop_all(&self.state(), now())
    }

    /// Boots the host. Guests stay off until they are started.
    ///
    /// # Errors
    /// If nova-compute cannot be started.
    pub fn power_on(&mut self) -> Result<(), LabError> {
        self.set_boot_time(now())?;
        self.start_again()
    }

    /// From its next start on, nova-compute gives its first sign of life only after so many seconds.
    pub fn silent_at_start(&mut self, seconds: u32) {
        self.first_sign_s = seconds;
    }

    /// The guests on the host, by their servers' ids.
    ///
    /// # Errors
    /// If the driver's file cannot be read.
    pub fn domains(&self) -> Result<BTreeMap<String, Domain>, LabError> {
        domains::read(&self.state())
    }

    /// Whether this server's guest runs on the host, by the driver's file and not by Nova.
    ///
    /// # Errors
    /// If the driver's file cannot be read.
    pub fn runs(&self, server: &str) -> Result<bool, LabError> {
        Ok(self.domains()?.get(server).is_some_and(|domain| domain.running))
    }

    /// Every change of the host's guests, the oldest first.
    ///
    /// # Errors
    /// If the driver's file cannot be read.
    pub fn history(&self) -> Result<Vec<Change>, LabError> {
        domains::read_history(&self.state())
    }

    /// Waits for a heartbeat that is newer than the last start; the service may be forced down.
    ///
    /// # Errors
    /// If no heartbeat comes within two minutes, or nova-compute has ended.
    pub fn wait_heard(&self) -> Result<(), LabError> {
        self.wait(|| self.is_heard())
    }

    /// Waits until the host is ready in Nova and Placement: a heartbeat since its start, up, in a cell, with an inventory.
    ///
    /// # Errors
    /// If that takes more than two minutes, or nova-compute has ended.
    pub fn wait_ready(&self) -> Result<(), LabError> {
        self.wait(|| self.is_heard() && self.is_ready().unwrap_or(false))
    }

    fn wait(&self, is_ready: impl Fn() -> bool) -> Result<(), LabError> {
        let Some(leash) = &self.leash else {
            return Err(LabError::NotSeen {
                what: format!("readiness of {}", self.name),
                seconds: 0,
                seen: "nova-compute does not run".to_owned(),
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
        // Nova lists a host among its hypervisors only once the host is in a cell.
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

    /// Makes Neutron's agent on the host alive or dead.
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
            // After a failed test the host may be left: then it must at least not get servers.
            let _ = self.take_away();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "real processes are measured by real time"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
