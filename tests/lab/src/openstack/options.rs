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

/// How an OpenStack is started.
#[derive(Clone, Debug)]
pub struct OpenStackOptions {
    /// Which services there are.
    pub services: Services,
    /// A folder with Debian's `api-paste.ini` of each service in `paste/`; initialised databases are kept here as well.
    pub parts: PathBuf,
}

impl OpenStackOptions {
    /// Everything but Masakari.
    #[must_use]
    pub fn new(parts: &Path) -> Self {
        Self {
            services: Services::All,
            parts: parts.to_owned(),
        }
    }
}
