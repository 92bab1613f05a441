//! Hosts that really run, write, freeze and die: virtual machines with a BMC each, and one disk that they share.
//!
//! Nothing here needs root, and nothing listens anywhere but on loopback and in folders of its own. A machine is emulated where the
//! processor cannot help, which costs some seconds of a core for each boot.

pub(crate) mod button;
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

/// Names the folder with what virtual hosts start from.
pub const VM: &str = "RINGFENCE_TEST_VM";

/// The kernel of virtual hosts, and the little that runs on it.
#[derive(Clone, Debug)]
pub struct VmImage {
    folder: PathBuf,
}

impl VmImage {
    /// The file name of the kernel.
    pub const KERNEL: &'static str = "kernel";
    /// The file name of its first file system.
    pub const INITRD: &'static str = "initrd";
    /// The name of the folder with QEMU's packages, where the machine has no QEMU of its own.
    pub const QEMU_FOLDER: &'static str = "qemu";
    /// QEMU's program.
    pub const QEMU: &'static str = "qemu-system-x86_64";

    /// What `cargo xtask` has made before it started the tests, if it has.
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

    /// QEMU, and the folder with its libraries where they are not the machine's.
    pub(crate) fn qemu(&self) -> Option<(PathBuf, Option<PathBuf>)> {
        let unpacked = self.folder.join(Self::QEMU_FOLDER).join("usr");
        let program = unpacked.join("bin").join(Self::QEMU);
        if program.is_file() {
            return Some((program, Some(unpacked.join("lib/x86_64-linux-gnu"))));
        }
        Some((find_program(Self::QEMU)?, None))
    }
}

/// A path as an option of QEMU's, in which a comma ends a value unless there are two.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
