//! The host of a node: its power, its boots and its containers.

use std::sync::Arc;

use nix::sys::signal::Signal;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::line::Line;
use super::process::Process;
use super::runs::{self, ContainerRun, now_ms};
use super::{CSI_DRIVER, ControlPlane, KubeletOptions};
use crate::button::Machine;
use crate::error::{During, LabError};
use crate::home::Home;
use crate::rope::Rope;

/// The group of all kubelets.
const GROUP: &str = "system:nodes";

/// What the node's program logs when its kubelet has taken the volume driver in.
const DRIVER_REGISTERED: &str = "the volume driver is registered: true";

/// A boot of a host.
#[derive(Clone, Debug)]
struct Boot {
    id: String,
    /// When the host was switched off, in milliseconds since 1970.
    ended_ms: Option<i64>,
    /// The length of the kubelet's log before this boot.
    logged_before: usize,
}

/// A host. It is on while its process runs.
#[derive(Debug)]
pub(super) struct Host {
    process: Process,
    name: String,
    lease_seconds: u64,
    labels: Value,
    line: Line,
    boots: Mutex<Vec<Boot>>,
    /// Keeps the files from outliving the test process while the host is off.
    _rope: Rope,
    home: Home,
}

impl Host {
    /// A host that is off.
    pub(super) fn new(
        plane: &ControlPlane,
        name: &str,
        options: &KubeletOptions,
    ) -> Result<Arc<Self>, LabError> {
        let home = Home::new("node")?;
        let user = plane.pki().user(&format!("system:node:{name}"), Some(GROUP))?;
        let line = Line::to(plane.port())?;
        let by_line = format!("https://{}", line.address());
        home.write("kubeconfig", &user.replace(plane.url(), &by_line))?;
        let program = plane.programs().path("hollow-node");
        let labels = options.labels.iter();
        let labels = labels.map(|(name, value)| (name.clone(), json!(value)));
        Ok(Arc::new(Self {
            process: Process::new("hollow-node", program, home.path().to_owned()),
            name: name.to_owned(),
            lease_seconds: plane.node_grace().as_secs().max(1),
            labels: Value::Object(labels.collect()),
            line,
            boots: Mutex::default(),
            _rope: Rope::of(home.path())?,
            home,
        }))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), LabError> {
        self.process.signal(signal)
    }

    /// The id of the present boot, or of the last one.
    pub(super) fn boot_id(&self) -> String {
        let boots = self.boots.lock();
        boots.last().map(|boot| boot.id.clone()).unwrap_or_default()
    }

    /// Waits until the kubelet of this boot knows its volume driver. Its API object does not tell: that outlives the boot. A kubelet that the
    /// API server leaves alone meanwhile tries again up to two minutes later.
    pub(super) fn until_volume_driver(&self) -> Result<(), LabError> {
        let before = self.boots.lock().last().map_or(0, |boot| boot.logged_before);
        self.process.wait(|| {
            let log = std::fs::read(self.process.log()).unwrap_or_default();
            let of_boot = log.get(before..).unwrap_or_default();
            String::from_utf8_lossy(of_boot).contains(DRIVER_REGISTERED)
        })
    }

    /// Every container that the host has run, the oldest first.
    pub(super) fn runs(&self) -> Result<Vec<ContainerRun>, LabError> {
        let ends = |boot: &str| {
            let boots = self.boots.lock();
            let found = boots.iter().find(|one| one.id == boot);
            found.and_then(|one| one.ended_ms)
        };
        runs::read(&self.home.join("containers.log"), &self.name, ends)
    }

    fn arguments(&self, boot: &str) -> Vec<String> {
        vec![
            format!("--name={}", self.name),
            format!("--boot-id={boot}"),
            format!("--kubeconfig={}", self.home.text("kubeconfig")),
            format!("--folder={}", self.home.path().display()),
            format!("--csi-driver={CSI_DRIVER}"),
            format!("--lease-seconds={}", self.lease_seconds),
            format!("--labels={}", self.labels),
        ]
    }
}

impl Machine for Host {
    fn is_on(&self) -> bool {
        self.process.is_running()
    }

    fn switch_on(&self) -> Result<(), LabError> {
        if self.is_on() {
            return Ok(());
        }
        let boot = new_boot_id()?;
        let logged_before = std::fs::read(self.process.log()).map_or(0, |log| log.len());
        self.boots.lock().push(Boot {
            id: boot.clone(),
            ended_ms: None,
            logged_before,
        });
        self.process.start(self.arguments(&boot))
    }

    fn switch_off(&self) {
        self.process.kill();
        if let Some(boot) = self.boots.lock().last_mut() {
            boot.ended_ms.get_or_insert_with(now_ms);
        }
    }

    fn reset(&self) -> Result<(), LabError> {
        self.switch_off();
        self.switch_on()
    }
}

/// A random id as the kernel makes one at each boot.
fn new_boot_id() -> Result<String, LabError> {
    let file = "/proc/sys/kernel/random/uuid";
    let text = std::fs::read_to_string(file).during(|| format!("reading {file}"))?;
    Ok(text.trim().to_owned())
}
