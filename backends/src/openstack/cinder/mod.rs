//! Cinder: the hosts that each volume is connected to.

mod cutting;
mod held;
mod note;
mod releasing;
mod rights;

pub use held::HeldVolumes;
pub(super) use releasing::release_reserves_of;

use ringfence_core::Parameters;

/// The name in errors and methods.
pub const CINDER: &str = "cinder";

/// What the operator vouches for in the method's parameters.
#[derive(Debug)]
pub struct Trust<'a> {
    /// Backends that let a host write no more once it is disconnected.
    backends: Vec<&'a str>,
    /// Whether the disks of servers that are no volumes are on their host only.
    local_disks: bool,
}

impl<'a> Trust<'a> {
    /// From the parameters of a method.
    #[must_use]
    pub fn of(parameters: &'a Parameters) -> Self {
        let value = |name: &str| parameters.get(name).map_or("", String::as_str);
        let backends = value("trusted_backends").split(',').map(str::trim);
        Self {
            backends: backends.filter(|name| !name.is_empty()).collect(),
            local_disks: value("local_disks") == "true",
        }
    }
}
