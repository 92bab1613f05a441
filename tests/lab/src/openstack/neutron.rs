//! Neutron, and agents without switches that report to it for the tests' hosts.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    let broker = &site.broker;
    let state = site.make_state("neutron")?;
    let port = site.ports.network;
    let paste = site.etc("neutron-api-paste.ini");
    let database = site.database("neutron");
    let lock = site.home.text("lock");
    let keystone = site.auth("keystone_authtoken", "neutron");
    let text = format!(
        "[DEFAULT]
bind_host = 127.0.0.1
bind_port = {port}
transport_url = {broker}
core_plugin = ml2
service_plugins =
api_workers = 1
rpc_workers = 1
rpc_state_report_workers = 0
agent_down_time = 12
pagination_max_limit = 2
state_path = {state}
api_paste_config = {paste}
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
auth_strategy = keystone
[ml2]
type_drivers = local,flat,vlan,vxlan
tenant_network_types = local
mechanism_drivers = logger,openvswitch
extension_drivers =
[ml2_type_vlan]
network_vlan_ranges = physnet1:100:200
[ml2_type_flat]
flat_networks = physnet1
[database]
connection = {database}
[oslo_concurrency]
lock_path = {lock}
[oslo_messaging_notifications]
driver = noop
{keystone}"
    );
    site.configure("neutron.conf", &text).map(|_| ())
}

pub(crate) fn seed(site: &Site) -> Result<(), LabError> {
    program(site, "neutron-db-manage", "neutron.db.migration.cli")
        .arguments(["upgrade", "heads"].map(str::to_owned))
        .run("neutron-db-manage upgrade heads")
}

pub(crate) fn start(site: &Site) -> Result<Vec<Daemon>, LabError> {
    let agents = Program::script(site.folder(), "neutron_agents.py")
        .arguments([site.etc("neutron.conf"), site.home.text("agents")]);
    let server = program(site, "neutron-server", "neutron.cmd.eventlet.server");
    Ok(vec![
        Daemon::start(site, "neutron-agents", agents)?,
        Daemon::start(site, "neutron-server", server)?.at(site.ports.network),
    ])
}

fn program(site: &Site, name: &str, module: &str) -> Program {
    Program::python(site.folder(), name, module).configured([site.etc("neutron.conf")])
}
