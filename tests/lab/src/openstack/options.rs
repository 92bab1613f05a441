//! What an OpenStack consists of.

use std::path::{Path, PathBuf};

/// Everybody's password.
pub const OPENSTACK_PASSWORD: &str = "secret";

/// Which services there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Services {
    /// Keystone, Placement and Nova.
    Core,
    /// With Cinder, Neutron and Ironic.
    All,
    /// With Masakari as well, for something to measure beside.
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

/// How Masakari recovers a host. The rest is as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasakariSettings {
    /// Seconds that it sleeps after it has disabled a host, so that Nova takes it for down by itself
    /// (`wait_period_after_service_update`).
    pub wait_s: u32,
    /// Servers that it moves at a time (`host_failure_recovery_threads`).
    pub at_once: u32,
}

impl MasakariSettings {
    /// Masakari's own.
    pub const DEFAULT: Self = Self {
        wait_s: 180,
        at_once: 3,
    };
}

/// How an OpenStack is started.
#[derive(Clone, Debug)]
pub struct OpenStackOptions {
    /// Which services there are.
    pub services: Services,
    /// A folder with Debian's `api-paste.ini` of each service in `paste/`; initialised databases are kept here as well.
    pub parts: PathBuf,
    /// How Masakari recovers, where there is one.
    pub masakari: MasakariSettings,
}

impl OpenStackOptions {
    /// Everything but Masakari.
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
