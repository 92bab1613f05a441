//! The arguments of QEMU for a host.

use ringfence_guest::ANSWER_PORT;
use serde_json::{Value, json};

use super::store::Way;
use super::{VmImage, quoted};
use crate::home::Home;

/// The file of the host's console.
pub(super) const CONSOLE: &str = "console.log";
/// The socket for QEMU's commands.
pub(super) const QMP: &str = "qmp.sock";
/// The id of the host's network card, for its cable.
pub(super) const CARD: &str = "card";
/// Mebibytes of memory: with fewer the kernel does not start.
const MEMORY: &str = "96";

/// A host that is about to be started.
pub(super) struct Qemu<'a> {
    pub image: &'a VmImage,
    /// The port on 127.0.0.1 at which the host answers.
    pub port: u16,
    pub way: &'a Way,
    pub home: &'a Home,
}

impl Qemu<'_> {
    pub(super) fn arguments(&self) -> Vec<String> {
        let Way { host, number, .. } = self.way;
        let file = |name| quoted(&self.home.join(name));
        let kernel = self.image.kernel().display().to_string();
        let initrd = self.image.initrd().display().to_string();
        // On a busy machine the kernel's timer check fails and the kernel panics, unless it is told to skip the check.
        let append =
            format!("console=ttyS0 quiet mitigations=off random.trust_cpu=on no_timer_check number={number}");
        let console = format!("file,id=console,path={},append=on", file(CONSOLE));
        let qmp = format!("unix:{},server=on,wait=off", file(QMP));
        // The guest reaches no other network; callers are forwarded to it.
        let net = format!(
            "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{}-:{ANSWER_PORT}",
            self.port
        );
        let card = format!("virtio-net-pci,netdev=net,id={CARD},romfile=");
        let mut words = vec![
            ["-name", host],
            ["-machine", "pc"],
            ["-accel", accelerator()],
            ["-cpu", "max"],
            ["-m", MEMORY],
            ["-display", "none"],
            ["-kernel", &kernel],
            ["-initrd", &initrd],
            ["-append", &append],
            ["-chardev", &console],
            ["-serial", "chardev:console"],
            ["-qmp", &qmp],
            ["-netdev", &net],
            ["-device", &card],
        ]
        .concat();
        words.extend(["-nodefaults", "-no-user-config"]);
        words.into_iter().map(str::to_owned).collect()
    }
}

/// The commands that plug the host's disk in: the export as a block device, and the disk in the host.
///
/// A lost write fails in the host at once: none waits until the array is back, and none waits in a cache.
pub(super) fn put_in_disk(way: &Way) -> [(&'static str, Value); 2] {
    let server = json!({ "type": "unix", "path": way.nbd });
    let node = json!({ "driver": "nbd", "node-name": "disk", "server": server, "export": way.host });
    let disk = json!({
        "driver": "virtio-blk-pci", "id": "disk", "drive": "disk", "share-rw": true, "write-cache": "off",
        "werror": "report", "rerror": "report",
    });
    [("blockdev-add", node), ("device_add", disk)]
}

/// `/dev/kvm` may exist without hardware virtualization, and then hosts never start.
fn accelerator() -> &'static str {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let helps = processor
        .split_whitespace()
        .any(|flag| flag == "vmx" || flag == "svm");
    let may = nix::unistd::access("/dev/kvm", nix::unistd::AccessFlags::W_OK).is_ok();
    if helps && may { "kvm" } else { "tcg,tb-size=16" }
}
