//! Ironic, API and conductor in one process, with simulated hardware.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    let state = site.make_state("ironic")?;
    let port = site.ports.ironic;
    let database = site.database("ironic");
    let lock = site.home.text("lock");
    let keystone = site.auth("keystone_authtoken", "ironic");
    let text = format!(
        "[DEFAULT]
auth_strategy = keystone
rpc_transport = none
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
enabled_storage_interfaces = noop,fake
enabled_vendor_interfaces = fake,no-vendor
default_network_interface = noop
host = localhost
my_ip = 127.0.0.1
state_path = {state}
tempdir = {state}
[api]
host_ip = 127.0.0.1
port = {port}
api_workers = 1
[database]
connection = {database}
[conductor]
automated_clean = false
sync_power_state_interval = 10
heartbeat_interval = 5
[fake]
power_delay = 0
[pxe]
tftp_root = {state}/tftp
[deploy]
http_root = {state}/http
[oslo_concurrency]
lock_path = {lock}
{keystone}"
    );
    site.make_state("ironic/tftp")?;
    site.make_state("ironic/http")?;
    site.configure("ironic.conf", &text).map(|_| ())
}

pub(crate) fn seed(site: &Site) -> Result<(), LabError> {
    program(site, "ironic-dbsync", "ironic.cmd.dbsync")
        .arguments(["create_schema".to_owned()])
        .run("ironic-dbsync create_schema")
}

pub(crate) fn start(site: &Site) -> Result<Daemon, LabError> {
    let program = program(site, "ironic", "ironic.cmd.singleprocess");
    Ok(Daemon::start(site, "ironic", program)?.at(site.ports.ironic))
}

fn program(site: &Site, name: &str, module: &str) -> Program {
    Program::python(site.folder(), name, module).configured([site.etc("ironic.conf")])
}
