//! Hosts that really run, write, freeze and die: virtual machines with a BMC each, and one disk that they share.
//!
//! Virtual hosts need no root, and listen only on loopback and in folders of their own. Without hardware virtualization a machine is
//! emulated, which costs some seconds of a core for each boot.

mod disk_slot;
mod host;
mod machine;
mod qemu;
mod qmp;
mod records;
mod store;

use std::path::{Path, PathBuf};

use crate::programs::find_program;

pub use host::{VmAddress, VmHost};
pub use records::Landed;
pub use ringfence_guest::Record;
pub use store::VmStore;

/// The variable with the folder of the files from which virtual hosts boot.
pub const VM: &str = "RINGFENCE_TEST_VM";

/// The kernel and the first file system of virtual hosts.
#[derive(Clone, Debug)]
pub struct VmImage {
    folder: PathBuf,
}

impl VmImage {
    /// The kernel's file name.
    pub const KERNEL: &'static str = "kernel";
    /// The file name of the first file system.
    pub const INITRD: &'static str = "initrd";
    /// The name of the folder with QEMU's packages, for a machine without an installed QEMU.
    pub const QEMU_FOLDER: &'static str = "qemu";
    /// QEMU's program.
    pub const QEMU: &'static str = "qemu-system-x86_64";

    /// The files that `cargo xtask` has made before the tests, if it has.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let folder = std::env::var_os(VM).filter(|folder| !folder.is_empty())?;
        Some(Self {
            folder: PathBuf::from(folder),
        })
    }

    pub(crate) fn kernel(&self) -> PathBuf {
        self.folder.join(Self::KERNEL)
    }

    pub(crate) fn initrd(&self) -> PathBuf {
        self.folder.join(Self::INITRD)
    }

    /// QEMU, and the folder with its libraries if QEMU is not installed.
    pub(crate) fn qemu(&self) -> Option<(PathBuf, Option<PathBuf>)> {
        let unpacked = self.folder.join(Self::QEMU_FOLDER).join("usr");
        let program = unpacked.join("bin").join(Self::QEMU);
        if program.is_file() {
            return Some((program, Some(unpacked.join("lib/x86_64-linux-gnu"))));
        }
        Some((find_program(Self::QEMU)?, None))
    }
}

/// A path as a value of a QEMU option, in which a comma is doubled.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
