//! Placement.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::program::Program;
use crate::openstack::site::Site;
use crate::openstack::wsgi;

pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    let database = site.database("placement");
    let auth = site.auth("keystone_authtoken", "placement");
    let text = format!(
        "[api]
auth_strategy = keystone
[placement_database]
connection = {database}
{auth}"
    );
    // Placement reads the file of this name in a folder that it gets.
    site.home.make_folder("etc/placement")?;
    site.configure("placement/placement.conf", &text).map(|_| ())
}

pub(crate) fn seed(site: &Site) -> Result<(), LabError> {
    Program::new("/usr/bin/placement-manage")
        .arguments(["--config-dir".to_owned(), site.etc("placement")])
        .arguments(["db", "sync"].map(str::to_owned))
        .run("placement-manage db sync")
}

pub(crate) fn start(site: &Site) -> Result<Daemon, LabError> {
    let program = wsgi::program("/usr/bin/placement-api", site.ports.placement)
        .with("OS_PLACEMENT_CONFIG_DIR", site.etc("placement"));
    Ok(Daemon::start(site, "placement", program)?.at(site.ports.placement))
}
