//! The kernel of virtual hosts: Debian's own, taken out of its package.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_lab::VmImage;

use crate::error::{XtaskError, at};
use crate::workspace::carry_out_quietly;
use crate::{apt, deb};

/// A package that depends on the newest kernel of this Debian. The kernel for clouds lacks drivers.
const PACKAGE: &str = "linux-image-amd64";
const PROGRAM: &str = "taking out the kernel";
/// The folder with the modules.
pub const MODULES: &str = "modules";
/// The modules that a virtual host needs, each after those that it depends on, with their path in the package.
pub const NAMES: [&str; 9] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
];
/// The first bytes of an `xz` stream.
const XZ: &[u8] = b"\xfd7zXZ\0";

/// Whether all files exist.
pub fn is_complete(folder: &Path) -> bool {
    let modules = folder.join(MODULES);
    let are_there = (0..NAMES.len()).all(|number| modules.join(module(number)).is_file());
    are_there && folder.join(VmImage::KERNEL).is_file()
}

/// The file name of a module. Files are loaded in the order of their names.
fn module(number: usize) -> String {
    let name = NAMES[number].rsplit('/').next().unwrap_or_default();
    format!("{number}-{name}.ko")
}

/// Downloads the package and unpacks it; returns the folder.
pub fn fetch(folder: &Path) -> Result<PathBuf, XtaskError> {
    let downloads = folder.join("downloads");
    std::fs::create_dir_all(&downloads).map_err(at(&downloads))?;
    let needs = apt::needs_of(PACKAGE, &downloads)?;
    let kernel = needs.iter().find(|name| name.starts_with("linux-image-"));
    let kernel = kernel.ok_or(XtaskError::Absent {
        program: "apt-cache depends linux-image-amd64",
        what: "which kernel it stands for",
    })?;
    deb::unpacked(&[kernel], &downloads)
}

/// Takes the needed files out of the unpacked package, and removes the rest.
pub fn take_out(package: &Path, folder: &Path) -> Result<(), XtaskError> {
    let modules = folder.join(MODULES);
    std::fs::create_dir_all(&modules).map_err(at(&modules))?;
    let all = only_entry(&package.join("lib/modules"))?.join("kernel");
    for (number, name) in NAMES.iter().enumerate() {
        let from = all.join(format!("{name}.ko"));
        std::fs::copy(&from, modules.join(module(number))).map_err(at(&from))?;
    }
    let boot = package.join("boot");
    let packed = entries(&boot)?.into_iter().find(|path| is_kernel(path));
    let packed = packed.ok_or(XtaskError::Absent {
        program: PROGRAM,
        what: "where the kernel is in its package",
    })?;
    // The kernel is written last, since its presence shows that all files exist.
    let (ready, beside) = (folder.join(VmImage::KERNEL), folder.join("kernel.new"));
    unpack_kernel(&packed, &beside)?;
    std::fs::rename(&beside, &ready).map_err(at(&ready))?;
    let downloads = folder.join("downloads");
    std::fs::remove_dir_all(&downloads).map_err(at(&downloads))
}

fn is_kernel(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("vmlinuz-")
}

/// QEMU can enter an unpacked kernel directly, so that no host has to unpack it, which is half of the time of a boot. A kernel that is
/// packed in another form is used as it is.
fn unpack_kernel(from: &Path, to: &Path) -> Result<(), XtaskError> {
    let packed = std::fs::read(from).map_err(at(from))?;
    let Some(payload) = payload(&packed).filter(|payload| payload.starts_with(XZ)) else {
        return std::fs::write(to, &packed).map_err(at(to));
    };
    let beside = to.with_extension("xz");
    std::fs::write(&beside, payload).map_err(at(&beside))?;
    unpack(&beside, to)?;
    std::fs::remove_file(&beside).map_err(at(&beside))
}

/// The position of the packed kernel, by Linux' boot protocol.
fn payload(kernel: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let bytes = kernel.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    // 0 stands for 4, since the time of floppy disks.
    let sectors = match *kernel.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let (offset, length) = (number(0x248)?, number(0x24c)?);
    let begin = (sectors + 1) * 512 + offset;
    kernel.get(begin..begin + length)
}

/// Bytes after the stream belong to the kernel, and are no error.
fn unpack(from: &Path, to: &Path) -> Result<(), XtaskError> {
    let mut xz = Command::new("xz");
    xz.args(["-dc", "--single-stream"]).arg(from);
    carry_out_quietly(xz.stdout(File::create(to).map_err(at(to))?), "xz -dc")
}

fn only_entry(folder: &Path) -> Result<PathBuf, XtaskError> {
    entries(folder)?.pop().ok_or(XtaskError::Absent {
        program: PROGRAM,
        what: "where the modules are in its package",
    })
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, XtaskError> {
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_kernel_is_found_where_the_boot_protocol_says() {
        let mut kernel = vec![0; 0x1000];
        kernel[0x1f1] = 2;
        kernel[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        kernel[0x24c..0x250].copy_from_slice(&6u32.to_le_bytes());
        kernel[3 * 512 + 16..3 * 512 + 22].copy_from_slice(XZ);
        assert_eq!(payload(&kernel), Some(XZ));
        assert_eq!(payload(&kernel[..0x240]), None);
    }
}
