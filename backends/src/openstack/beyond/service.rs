//! The services that are asked, each with its type in the catalogue and the version of its API.
//!
//! The crate's queries choose a version by themselves for each kind of object, 2.47 at most for Nova. Here the version is the newest whose
//! meaning is known.

use openstack::common::ApiVersion;
use openstack::session::{ServiceType, Session};
use openstack::{Error, ErrorKind};

use crate::openstack::{CINDER, IRONIC, NEUTRON};

const VERSION_HEADER: &str = "OpenStack-API-Version";

/// A service of OpenStack.
#[derive(Clone, Copy, Debug)]
pub(in crate::openstack) struct Service {
    /// The service's name in errors.
    pub name: &'static str,
    /// The service's type in catalogues.
    catalog: &'static str,
    /// The major version of the API, where the service has several.
    major: Option<u16>,
    /// Whether the service is asked for its versions.
    tells_versions: bool,
    version: Version,
}

#[derive(Clone, Copy, Debug)]
enum Version {
    /// The API has no versions.
    None,
    /// A header and its value.
    Fixed(&'static str, &'static str),
    /// The newest version of the range that the service has.
    Newest(Range),
}

/// The versions in which a call has the meaning that is used here.
#[derive(Clone, Copy, Debug)]
pub(in crate::openstack) struct Range {
    /// Before this version the call does not exist, or has other parameters.
    needs: ApiVersion,
    /// In later versions the call means something else, or was never tried.
    wants: ApiVersion,
}

/// Before 2.68 an evacuation could be forced past the scheduler. Up to 2.94 an evacuated server is started again if it ran; from 2.95 on
/// it stays stopped.
pub(in crate::openstack) const VERSIONS: Range = Range {
    needs: ApiVersion(2, 68),
    wants: ApiVersion(2, 94),
};

pub(in crate::openstack) const NOVA: Service = Service {
    name: "nova",
    catalog: "compute",
    major: Some(2),
    tells_versions: true,
    version: Version::Newest(VERSIONS),
};

/// For the volumes of a server: from 2.89 on Nova tells the ids of their attachments.
pub(in crate::openstack) const NOVA_WITH_ATTACHMENTS: Service = Service {
    version: Version::Newest(Range {
        needs: ApiVersion(2, 89),
        wants: ApiVersion(2, 94),
    }),
    ..NOVA
};

/// For lists of hypervisors: from 2.88 on Nova asks every host in them for its uptime, and waits a minute for one that is dead.
pub(in crate::openstack) const NOVA_WITHOUT_UPTIME: Service = Service {
    version: Version::Newest(Range {
        needs: ApiVersion(2, 53),
        wants: ApiVersion(2, 87),
    }),
    ..NOVA
};

/// Placement's version document gives an empty address, which the crate cannot read, so Placement is not asked for it. The version is the
/// first with traits.
pub(in crate::openstack) const PLACEMENT: Service = Service {
    name: "placement",
    catalog: "placement",
    major: None,
    tells_versions: false,
    version: Version::Fixed(VERSION_HEADER, "placement 1.6"),
};

/// Cinder's endpoint holds the project's id, which a request for versions would lose. This version has all calls for attachments.
pub(in crate::openstack) const CINDER_API: Service = Service {
    name: CINDER,
    catalog: "volumev3",
    major: None,
    tells_versions: false,
    version: Version::Fixed(VERSION_HEADER, "volume 3.44"),
};

pub(in crate::openstack) const NEUTRON_API: Service = Service {
    name: NEUTRON,
    catalog: "network",
    major: None,
    tells_versions: true,
    version: Version::None,
};

pub(in crate::openstack) const IRONIC_API: Service = Service {
    name: IRONIC,
    catalog: "baremetal",
    major: None,
    tells_versions: true,
    version: Version::Fixed("X-OpenStack-Ironic-API-Version", "1.8"),
};

pub(in crate::openstack) const KEYSTONE: Service = Service {
    name: "keystone",
    catalog: "identity",
    major: Some(3),
    tells_versions: true,
    version: Version::None,
};

impl ServiceType for Service {
    fn catalog_type(&self) -> &'static str {
        self.catalog
    }

    fn major_version_supported(&self, version: ApiVersion) -> bool {
        self.major.is_none_or(|major| version.0 == major)
    }

    fn version_discovery_supported(&self) -> bool {
        self.tells_versions
    }
}

impl Service {
    /// The header that names the version. The versions of a service are read once for each session.
    pub async fn version(self, session: &Session) -> Result<Option<(&'static str, String)>, Error> {
        Ok(match self.version {
            Version::None => None,
            Version::Fixed(header, version) => Some((header, version.to_owned())),
            Version::Newest(range) => {
                let has = session.get_api_versions(self).await?;
                let version =
                    pick(has, range).map_err(|why| Error::new(ErrorKind::IncompatibleApiVersion, why))?;
                Some((VERSION_HEADER, format!("{} {version}", self.catalog)))
            }
        })
    }
}

pub(in crate::openstack) fn pick(
    has: Option<(ApiVersion, ApiVersion)>,
    range: Range,
) -> Result<ApiVersion, String> {
    let Range { needs, wants } = range;
    let Some((oldest, newest)) = has else {
        return Err(format!(
            "its version document names no versions of the API, and {needs} to {wants} can be used"
        ));
    };
    let version = wants.min(newest);
    if version < needs || version < oldest {
        return Err(format!(
            "it has versions {oldest} to {newest} of its API, and {needs} to {wants} can be used"
        ));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range {
        needs: ApiVersion(2, 68),
        wants: ApiVersion(2, 94),
    };

    fn with(oldest: u16, newest: u16) -> Result<ApiVersion, String> {
        pick(Some((ApiVersion(2, oldest), ApiVersion(2, newest))), RANGE)
    }

    #[test]
    fn the_newest_is_taken_that_both_have() {
        assert_eq!(with(1, 100), Ok(ApiVersion(2, 94)));
        assert_eq!(with(1, 93), Ok(ApiVersion(2, 93)));
        assert_eq!(with(1, 68), Ok(ApiVersion(2, 68)));
        assert_eq!(with(94, 120), Ok(ApiVersion(2, 94)));
    }

    #[test]
    fn what_is_too_old_or_too_new_is_told_with_both_sides() {
        for (oldest, newest) in [(1, 67), (95, 120)] {
            let why = with(oldest, newest).unwrap_err();
            assert!(
                why.contains(&format!("2.{oldest} to 2.{newest}")) && why.contains("2.68 to 2.94"),
                "{why}"
            );
        }
        assert!(pick(None, RANGE).unwrap_err().contains("2.68 to 2.94"));
    }
}
