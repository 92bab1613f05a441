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
}

/// A path as an option of QEMU's, in which a comma ends a value unless there are two.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
