//! The storage array: one disk, with an export for each host that can be closed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_guest::AREA_BYTES;
use serde_json::json;

use super::qmp::Qmp;
use super::quoted;
use super::records::{Landed, Watch};
use crate::error::{During, LabError};
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::programs::find_program;

const PROGRAM: &str = "qemu-storage-daemon";
const PACKAGE: &str = "qemu-utils";
const READY_LIMIT: Duration = Duration::from_secs(20);
const DISK: &str = "disk.img";
/// The socket of the hosts' exports.
const NBD: &str = "nbd.sock";
/// The socket for commands to the array.
const QMP: &str = "qmp.sock";
/// A fence agent that closes and opens the export of one host.
const AGENT: &str = include_str!("fence_vm_store.py");

/// An array with one disk, to which all its hosts write. Each has an export of its own (NBD, on a socket in a folder of the array's).
#[derive(Debug)]
pub struct VmStore {
    watch: Watch,
    _leash: Leash,
    hosts: Vec<String>,
    home: Home,
}

impl VmStore {
    /// The name of the fence agent for this array.
    pub const AGENT: &'static str = "fence_vm_store";

    /// Starts an array with an empty disk and an open export for each of these hosts.
    ///
    /// # Errors
    /// If QEMU's storage daemon is not installed, or does not become ready within 20 s.
    pub fn start(hosts: &[&str]) -> Result<Self, LabError> {
        let program = find_program(PROGRAM).ok_or(LabError::Missing {
            program: PROGRAM,
            package: PACKAGE,
        })?;
        let home = Home::new("store")?;
        let bytes = hosts.len() * AREA_BYTES;
        let disk = home.join(DISK);
        make_disk(&disk, bytes)?;
        let log = home.join("store.log");
        let leash = Leash::start(Start {
            arguments: arguments(&home),
            ..Start::new(&program, &log, home.path())
        })?;
        wait_ready(PROGRAM, &leash, &log, READY_LIMIT, || home.join(QMP).exists())?;
        let store = Self {
            watch: Watch::start(&disk, bytes)?,
            _leash: leash,
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            home,
        };
        for host in hosts {
            store.restore(host)?;
        }
        Ok(store)
    }

    /// Closes the export of one host, and returns when it is closed: writes that the array has accepted may land until then.
    ///
    /// # Errors
    /// If the export is closed already, or the array does not answer.
    pub fn cut(&self, host: &str) -> Result<(), LabError> {
        let mut qmp = self.qmp()?;
        // "safe" would refuse while the host is connected.
        qmp.execute("block-export-del", &json!({ "id": host, "mode": "hard" }))?;
        qmp.until_event("BLOCK_EXPORT_DELETED", host)
    }

    /// Opens the export of one host.
    ///
    /// # Errors
    /// If the export is open already, or the array does not answer.
    pub fn restore(&self, host: &str) -> Result<(), LabError> {
        let export =
            json!({ "type": "nbd", "id": host, "name": host, "node-name": "disk", "writable": true });
        self.qmp()?.execute("block-export-add", &export).map(|_| ())
    }

    /// Whether the host has an export, which may be closing.
    ///
    /// # Errors
    /// If the array does not answer.
    pub fn is_open(&self, host: &str) -> Result<bool, LabError> {
        is_open(&self.control(), host)
    }

    /// Limits the writes of all hosts per second; `None` for no limit.
    ///
    /// An accepted write lands in its turn, also if the host is off by then.
    ///
    /// # Errors
    /// If the array does not answer.
    pub fn set_writes_per_s(&self, limit: Option<u32>) -> Result<(), LabError> {
        let limits = json!({ "iops-total": limit.unwrap_or(0) });
        let property = json!({ "path": "/objects/speed", "property": "limits", "value": limits });
        self.qmp()?.execute("qom-set", &property).map(|_| ())
    }

    /// Every record that has landed up to now.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn landed(&self) -> Result<Vec<Landed>, LabError> {
        self.watch.landed()
    }

    /// Writes the [fence agent](Self::AGENT) into a folder. Its parameters are `plug`, the host, and `socket`, the [control](Self::control).
    ///
    /// # Errors
    /// If the agent cannot be written.
    pub fn install_agent(folder: &Path) -> Result<(), LabError> {
        let path = folder.join(Self::AGENT);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::write(&path, AGENT)
            .and_then(|()| std::fs::set_permissions(&path, executable))
            .during(|| format!("writing {}", path.display()))
    }

    /// The socket for commands to the array.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.home.join(QMP)
    }

    /// The export of a host, if the array was started with the host.
    pub(super) fn way(&self, host: &str) -> Option<Way> {
        let number = self.hosts.iter().position(|known| known == host)?;
        Some(Way {
            host: host.to_owned(),
            number,
            nbd: self.home.join(NBD),
            control: self.control(),
        })
    }

    fn qmp(&self) -> Result<Qmp, LabError> {
        Qmp::connect(&self.control())
    }
}

/// The export of one host, open or not.
#[derive(Debug)]
pub(super) struct Way {
    pub host: String,
    /// The first byte of the host's part of the disk.
    pub number: usize,
    /// The socket of the export.
    pub nbd: PathBuf,
    control: PathBuf,
}

impl Way {
    pub(super) fn is_open(&self) -> Result<bool, LabError> {
        is_open(&self.control, &self.host)
    }
}

fn is_open(control: &Path, host: &str) -> Result<bool, LabError> {
    let exports = Qmp::connect(control)?.execute("query-block-exports", &json!({}))?;
    let mut exports = exports.as_array().into_iter().flatten();
    Ok(exports.any(|export| export["id"] == host))
}

fn make_disk(path: &Path, bytes: usize) -> Result<(), LabError> {
    std::fs::File::create(path)
        .and_then(|disk| disk.set_len(bytes as u64))
        .during(|| format!("making {}", path.display()))
}

/// Through the page cache, so that a record can be read here as soon as the host's write has returned.
fn arguments(home: &Home) -> Vec<String> {
    let file = |name| quoted(&home.join(name));
    let disk = format!(
        "driver=throttle,node-name=disk,throttle-group=speed,cache.no-flush=on,file.driver=raw,file.file.driver=file,file.file.filename={}",
        file(DISK)
    );
    let nbd = format!("addr.type=unix,addr.path={},max-connections=0", file(NBD));
    let qmp = format!("socket,id=control,path={},server=on,wait=off", file(QMP));
    [
        ["--object", "throttle-group,id=speed"],
        ["--blockdev", &disk],
        ["--nbd-server", &nbd],
        ["--chardev", &qmp],
        ["--monitor", "chardev=control"],
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect()
}
