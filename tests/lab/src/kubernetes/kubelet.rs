//! A node: a real kubelet, whose containers are entries in a list.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::process::Process;
use super::runs::{self, ContainerRun, now_ms};
use super::{CSI_DRIVER, ControlPlane, KubeApi, KubeletOptions};
use crate::error::{During, LabError};
use crate::home::Home;
use crate::rope::Rope;

const READY_LIMIT: Duration = Duration::from_secs(120);
/// The group of all kubelets.
const GROUP: &str = "system:nodes";

/// A boot of a node.
#[derive(Clone, Debug)]
struct Boot {
    id: String,
    /// When the node was killed, in milliseconds since 1970.
    ended_ms: Option<i64>,
}

/// A node of a cluster. It has a lease, takes and refuses pods, and reports their state as every kubelet does. It dies when the value is
/// dropped or the owning process dies; the `Node` object stays.
#[derive(Debug)]
pub struct Kubelet {
    process: Process,
    name: String,
    api: KubeApi,
    lease_seconds: u64,
    options: KubeletOptions,
    boots: Mutex<Vec<Boot>>,
    /// Keeps the files from outliving the test process while the node is dead.
    _rope: Rope,
    home: Home,
}

impl Kubelet {
    /// Boots a node of this name, and waits until it is ready for pods with volumes.
    ///
    /// # Errors
    /// If the program is missing, or the node does not become ready within two minutes.
    pub fn start(plane: &ControlPlane, name: &str, options: KubeletOptions) -> Result<Self, LabError> {
        let home = Home::new("node")?;
        let user = plane.pki().user(&format!("system:node:{name}"), Some(GROUP))?;
        home.write("kubeconfig", &user)?;
        let program = plane.programs().path("hollow-node");
        let node = Self {
            process: Process::new("hollow-node", program, home.path().to_owned()),
            name: name.to_owned(),
            api: plane.api().clone(),
            lease_seconds: plane.node_grace().as_secs().max(1),
            options,
            boots: Mutex::default(),
            _rope: Rope::of(home.path())?,
            home,
        };
        node.start_again()?;
        node.until_ready()?;
        Ok(node)
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the host has power.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// Kills the host with everything on it.
    pub fn kill(&self) {
        if !self.is_running() {
            return;
        }
        self.process.kill();
        if let Some(boot) = self.boots.lock().last_mut() {
            boot.ended_ms.get_or_insert(now_ms());
        }
    }

    /// Freezes the host. Its containers count as running: they go on when the host is thawed.
    ///
    /// # Errors
    /// If the host is dead.
    pub fn pause(&self) -> Result<(), LabError> {
        self.process.signal(Signal::SIGSTOP)
    }

    /// Thaws the host, in its former boot.
    ///
    /// # Errors
    /// If the host is dead.
    pub fn resume(&self) -> Result<(), LabError> {
        self.process.signal(Signal::SIGCONT)
    }

    /// Boots a host that was killed: nothing runs yet, and the boot id is new. The node is not waited for.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start_again(&self) -> Result<(), LabError> {
        if self.is_running() {
            return Ok(());
        }
        let boot = new_boot_id()?;
        self.boots.lock().push(Boot {
            id: boot.clone(),
            ended_ms: None,
        });
        self.process.start(self.arguments(&boot))
    }

    /// The id of the present boot, or of the last one.
    #[must_use]
    pub fn boot_id(&self) -> String {
        let boots = self.boots.lock();
        boots.last().map(|boot| boot.id.clone()).unwrap_or_default()
    }

    /// Waits until the API shows this boot as Ready, with the volume driver.
    ///
    /// # Errors
    /// If that does not come within two minutes.
    pub fn until_ready(&self) -> Result<(), LabError> {
        let boot = self.boot_id();
        let what = format!("node {} Ready in boot {boot}", self.name);
        self.api.until(&what, &self.path(), READY_LIMIT, |node| {
            node["status"]["nodeInfo"]["bootID"] == boot.as_str() && is_ready(node)
        })?;
        let what = format!("the volume driver on node {}", self.name);
        let path = format!("/apis/storage.k8s.io/v1/csinodes/{}", self.name);
        let has_driver = |node: &Value| {
            let drivers = node["spec"]["drivers"].as_array();
            drivers.is_some_and(|all| all.iter().any(|driver| driver["name"] == CSI_DRIVER))
        };
        self.api.until(&what, &path, READY_LIMIT, has_driver).map(|_| ())
    }

    /// Waits until the API shows the node as not Ready.
    ///
    /// # Errors
    /// If that does not come within two minutes.
    pub fn until_not_ready(&self) -> Result<(), LabError> {
        let what = format!("node {} not Ready", self.name);
        self.api
            .until(&what, &self.path(), READY_LIMIT, |node| !is_ready(node))
            .map(|_| ())
    }

    /// Every container that the host has run, the oldest first.
    ///
    /// # Errors
    /// If the host's list cannot be read.
    pub fn runs(&self) -> Result<Vec<ContainerRun>, LabError> {
        let ends = |boot: &str| {
            let boots = self.boots.lock();
            let found = boots.iter().find(|one| one.id == boot);
            found.and_then(|one| one.ended_ms)
        };
        runs::read(&self.home.join("containers.log"), &self.name, ends)
    }

    /// The kubelet's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.process.log().clone()
    }

    fn path(&self) -> String {
        format!("/api/v1/nodes/{}", self.name)
    }

    fn arguments(&self, boot: &str) -> Vec<String> {
        let labels = self.options.labels.iter();
        let labels: Value = labels.map(|(name, value)| (name.clone(), json!(value))).collect();
        let labels = if labels.is_null() { json!({}) } else { labels };
        vec![
            format!("--name={}", self.name),
            format!("--boot-id={boot}"),
            format!("--kubeconfig={}", self.home.text("kubeconfig")),
            format!("--folder={}", self.home.path().display()),
            format!("--csi-driver={CSI_DRIVER}"),
            format!("--lease-seconds={}", self.lease_seconds),
            format!("--labels={labels}"),
        ]
    }
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let is_it = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(is_it))
}

/// A random id as the kernel makes one at each boot.
fn new_boot_id() -> Result<String, LabError> {
    let file = "/proc/sys/kernel/random/uuid";
    let text = std::fs::read_to_string(file).during(|| format!("reading {file}"))?;
    Ok(text.trim().to_owned())
}
