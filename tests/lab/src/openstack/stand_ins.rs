//! Small programs in the place of Glance, and of Neutron in a cloud without it.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

pub(crate) fn start_image(site: &Site) -> Result<Daemon, LabError> {
    start(site, "image", site.ports.image)
}

pub(crate) fn start_network(site: &Site) -> Result<Daemon, LabError> {
    start(site, "network", site.ports.network)
}

fn start(site: &Site, kind: &'static str, port: u16) -> Result<Daemon, LabError> {
    let program =
        Program::script(site.folder(), "stand_in.py").arguments([kind.to_owned(), port.to_string()]);
    Ok(Daemon::start(site, kind, program)?.at(port))
}
