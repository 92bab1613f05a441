//! A node: a real kubelet, whose containers are entries in a list.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::host::Host;
use super::{ContainerRun, ControlPlane, KubeApi, KubeletOptions};
use crate::button::{Button, Machine as _};
use crate::error::LabError;
use crate::ipmi::IpmiBmc;

const READY_LIMIT: Duration = Duration::from_secs(120);

/// A node of a cluster. It has a lease, takes and refuses pods, and reports their state as every kubelet does. It dies when the value is
/// dropped or the owning process dies; the `Node` object stays.
#[derive(Debug)]
pub struct Kubelet {
    // Dropped in this order.
    bmc: Option<IpmiBmc>,
    host: Arc<Host>,
    api: KubeApi,
}

impl Kubelet {
    /// Boots a node of this name, and waits until it is ready for pods with volumes.
    ///
    /// # Errors
    /// If the program is missing, or the node does not become ready within two minutes.
    pub fn start(plane: &ControlPlane, name: &str, options: &KubeletOptions) -> Result<Self, LabError> {
        let host = Host::new(plane, name, options)?;
        host.switch_on()?;
        let of_bmc = Arc::clone(&host);
        let start_bmc = || IpmiBmc::start_with(|folder| Button::wire(folder, of_bmc).map(Some));
        let node = Self {
            bmc: options.with_bmc.then(start_bmc).transpose()?,
            host,
            api: plane.api().clone(),
        };
        node.until_ready()?;
        Ok(node)
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.name()
    }

    /// The host's BMC, if the node was started with one.
    #[must_use]
    pub fn bmc(&self) -> Option<&IpmiBmc> {
        self.bmc.as_ref()
    }

    /// Whether the host has power.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.host.is_on()
    }

    /// Kills the host with everything on it, without the BMC.
    pub fn kill(&self) {
        self.host.switch_off();
    }

    /// Freezes the host. Its containers count as running: they go on when the host is thawed.
    ///
    /// # Errors
    /// If the host is dead.
    pub fn pause(&self) -> Result<(), LabError> {
        self.host.signal(Signal::SIGSTOP)
    }

    /// Thaws the host, in its former boot.
    ///
    /// # Errors
    /// If the host is dead.
    pub fn resume(&self) -> Result<(), LabError> {
        self.host.signal(Signal::SIGCONT)
    }

    /// Cuts the host off from the API server, or ends that. The host itself notices nothing else.
    pub fn cut_off(&self, is_cut_off: bool) {
        self.host.line().cut(is_cut_off);
    }

    /// Boots a host that is off: nothing runs yet, and the boot id is new. The node is not waited for.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start_again(&self) -> Result<(), LabError> {
        self.host.switch_on()
    }

    /// The id of the present boot, or of the last one.
    #[must_use]
    pub fn boot_id(&self) -> String {
        self.host.boot_id()
    }

    /// Waits until the API shows this boot as Ready, with the volume driver.
    ///
    /// # Errors
    /// If that does not come within two minutes.
    pub fn until_ready(&self) -> Result<(), LabError> {
        let (name, boot) = (self.name(), self.boot_id());
        let what = format!("node {name} Ready in boot {boot}");
        self.api.until(&what, &self.path(), READY_LIMIT, |node| {
            node["status"]["nodeInfo"]["bootID"] == boot.as_str() && is_ready(node)
        })?;
        self.host.until_volume_driver()
    }

    /// Waits until the API shows the node as not Ready.
    ///
    /// # Errors
    /// If that does not come within two minutes.
    pub fn until_not_ready(&self) -> Result<(), LabError> {
        let what = format!("node {} not Ready", self.name());
        self.api
            .until(&what, &self.path(), READY_LIMIT, |node| !is_ready(node))
            .map(|_| ())
    }

    /// Every container that the host has run, the oldest first.
    ///
    /// # Errors
    /// If the host's list cannot be read.
    pub fn runs(&self) -> Result<Vec<ContainerRun>, LabError> {
        self.host.runs()
    }

    /// The kubelet's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.host.process().log().clone()
    }

    fn path(&self) -> String {
        format!("/api/v1/nodes/{}", self.name())
    }
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let is_it = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(is_it))
}
