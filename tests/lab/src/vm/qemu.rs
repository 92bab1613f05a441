//! How QEMU is started for a host.

use std::path::Path;

use ringfence_guest::ANSWER_PORT;

use super::{VmImage, quoted};
use crate::home::Home;

/// Where the host's console writes to.
pub(super) const CONSOLE: &str = "console.log";
/// Where QEMU is told what to do.
pub(super) const QMP: &str = "qmp.sock";
/// The host's network card, for its cable.
pub(super) const CARD: &str = "card";
/// Mebibytes: with less the kernel does not start.
const MEMORY: &str = "96";

/// A host that is about to be started.
pub(super) struct Qemu<'a> {
    pub name: &'a str,
    pub number: usize,
    pub image: &'a VmImage,
    /// The port on 127.0.0.1 at which the host answers.
    pub port: u16,
    /// The array's socket, if the host has a way to its disk.
    pub nbd: Option<&'a Path>,
    pub home: &'a Home,
}

impl Qemu<'_> {
    pub(super) fn arguments(&self) -> Vec<String> {
        let Self { name, number, .. } = self;
        let file = |name| quoted(&self.home.join(name));
        let kernel = self.image.kernel().display().to_string();
        let initrd = self.image.initrd().display().to_string();
        let append = format!("console=ttyS0 quiet mitigations=off random.trust_cpu=on number={number}");
        let console = format!("file,id=console,path={},append=on", file(CONSOLE));
        let qmp = format!("unix:{},server=on,wait=off", file(QMP));
        // It reaches nobody; whoever asks it is let through.
        let net = format!(
            "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{}-:{ANSWER_PORT}",
            self.port
        );
        let card = format!("virtio-net-pci,netdev=net,id={CARD},romfile=");
        let mut words = vec![
            ["-name", name],
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
        let words = words.into_iter().map(str::to_owned);
        words.chain(self.disk()).collect()
    }

    /// A write that is lost fails in the host at once. None is kept until the array is back, and none waits in a cache.
    fn disk(&self) -> Vec<String> {
        let Some(nbd) = self.nbd else {
            return Vec::new();
        };
        let way = format!(
            "driver=nbd,node-name=disk,server.type=unix,server.path={},export={}",
            quoted(nbd),
            self.name
        );
        let disk = "virtio-blk-pci,drive=disk,share-rw=on,werror=report,rerror=report,write-cache=off";
        vec!["-blockdev".to_owned(), way, "-device".to_owned(), disk.to_owned()]
    }
}

/// `/dev/kvm` may be there without the processor's help, and then hosts never start.
fn accelerator() -> &'static str {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let helps = processor
        .split_whitespace()
        .any(|flag| flag == "vmx" || flag == "svm");
    let may = nix::unistd::access("/dev/kvm", nix::unistd::AccessFlags::W_OK).is_ok();
    if helps && may { "kvm" } else { "tcg,tb-size=16" }
}
