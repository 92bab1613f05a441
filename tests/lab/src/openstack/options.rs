//! The options of an OpenStack.

use std::path::{Path, PathBuf};

/// The password of every user.
pub const OPENSTACK_PASSWORD: &str = "secret";

/// The services to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Services {
    /// Keystone, Placement and Nova.
    Core,
    /// With Cinder, Neutron and Ironic.
    All,
    /// With Masakari as well, for comparison in benchmarks.
    WithMasakari,
}

impl Services {
    pub(crate) fn has_more_than_core(self) -> bool {
        self != Self::Core
    }

    pub(crate) fn has_masakari(self) -> bool {
        self == Self::WithMasakari
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::All => "all",
            Self::WithMasakari => "with-masakari",
        }
    }
}

/// Settings of Masakari's recovery. Other settings have their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasakariSettings {
    /// Seconds that Masakari sleeps after it has disabled a host, so that Nova sees the host down
    /// (`wait_period_after_service_update`).
    pub wait_s: u32,
    /// Servers that Masakari moves at a time (`host_failure_recovery_threads`).
    pub at_once: u32,
}

impl MasakariSettings {
    /// Masakari's own defaults.
    pub const DEFAULT: Self = Self {
        wait_s: 180,
        at_once: 3,
    };
}

/// Options of an OpenStack.
#[derive(Clone, Debug)]
pub struct OpenStackOptions {
    /// The services to start.
    pub services: Services,
    /// A folder with Debian's `api-paste.ini` of each service in `paste/`; initialised databases are cached here as well.
    pub parts: PathBuf,
    /// Settings of Masakari's recovery, if there is a Masakari.
    pub masakari: MasakariSettings,
}

impl OpenStackOptions {
    /// All services but Masakari.
    #[must_use]
    pub fn new(parts: &Path) -> Self {
        Self {
            services: Services::All,
            parts: parts.to_owned(),
            masakari: MasakariSettings {
                wait_s: 15,
                ..MasakariSettings::DEFAULT
            },
        }
    }
}
