//! Nova without its computes, which belong to the tests.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::gate;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// A heartbeat every second, and down after six missing ones: tests stay short, and a machine that is busy with a build delays
/// heartbeats by less than that.
const REPORT_S: u32 = 1;
const DOWN_S: u32 = 6;

pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    site.configure("nova.conf", &common(site)?)?;
    let text = format!(
        "[api_database]\nconnection = {}\n[database]\nconnection = {}\n",
        site.database("nova_api"),
        site.database("nova_cell1"),
    );
    site.configure("nova-db.conf", &text).map(|_| ())
}

/// Settings that computes read as well, without a database.
fn common(site: &Site) -> Result<String, LabError> {
    let port = site.ports.nova;
    let broker = &site.broker;
    let state = site.make_state("nova")?;
    let lock = site.home.text("lock");
    let paste = site.etc("nova-api-paste.ini");
    let image = site.ports.image;
    let ringfence = gate::FILTER;
    let auth = [
        ("keystone_authtoken", "nova"),
        ("service_user", "nova"),
        ("placement", "nova"),
        ("cinder", "nova"),
        ("neutron", "nova"),
    ];
    let [keystone, service_user, placement, cinder, neutron] =
        auth.map(|(section, user)| site.auth(section, user));
    Ok(format!(
        "[DEFAULT]
transport_url = {broker}
my_ip = 127.0.0.1
host = controller
state_path = {state}
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = {port}
osapi_compute_workers = 1
compute_driver = guests_on_disk.GuestsOnDisk
report_interval = {REPORT_S}
service_down_time = {DOWN_S}
periodic_fuzzy_delay = 0
default_schedule_zone = nova
[notifications]
notify_on_state_change = vm_and_task_state
notification_format = versioned
[oslo_messaging_notifications]
driver = messagingv2
[wsgi]
api_paste_config = {paste}
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 1
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = {ringfence}
enabled_filters = {FILTERS}
track_instance_changes = false
[oslo_concurrency]
lock_path = {lock}
[glance]
endpoint_override = http://127.0.0.1:{image}
[vnc]
enabled = false
[quota]
instances = -1
cores = -1
ram = -1
{keystone}{service_user}send_service_user_token = true
{placement}{cinder}catalog_info = volumev3::internalURL
{neutron}"
    ))
}

const FILTERS: &str = "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,RingfenceFilter";

pub(crate) fn seed_api(site: &Site) -> Result<(), LabError> {
    manage(site, &["api_db", "sync"])
}

/// Statements that make the cells.
pub(crate) fn make_cells() -> &'static str {
    "insert into nova_api.cell_mappings (uuid, name, transport_url, database_connection, disabled, created_at) values \
     ('00000000-0000-0000-0000-000000000000', 'cell0', 'none:///', '', 0, now()), (uuid(), 'cell1', '', '', 0, now());\n"
}

/// Statements that tell Nova where its cells are.
pub(crate) fn point_cells(site: &Site) -> String {
    let broker = &site.broker;
    let point = |cell: &str, more: &str| {
        let database = site.database(&format!("nova_{cell}"));
        format!(
            "update nova_api.cell_mappings set database_connection = '{database}'{more} where name = '{cell}';\n"
        )
    };
    point("cell0", "") + &point("cell1", &format!(", transport_url = '{broker}'"))
}

/// The tables of both cells.
pub(crate) fn seed_cells(site: &Site) -> Result<(), LabError> {
    manage(site, &["db", "sync"])
}

fn manage(site: &Site, words: &[&str]) -> Result<(), LabError> {
    Program::python(site.folder(), "nova-manage", "nova.cmd.manage")
        .configured(["nova.conf", "nova-db.conf"].map(|name| site.etc(name)))
        .arguments(words.iter().map(|&word| word.to_owned()))
        .run(&format!("nova-manage {}", words.join(" ")))
}

fn program(site: &Site, name: &str, module: &str) -> Program {
    Program::python(site.folder(), name, module)
        .configured(["nova.conf", "nova-db.conf"].map(|name| site.etc(name)))
}

pub(crate) fn start(site: &Site) -> Result<Vec<Daemon>, LabError> {
    let asking = |program| gate::asking(program, site.etc(gate::SETTINGS));
    let scheduling = program(site, "nova-scheduler", "nova.cmd.scheduler");
    let conducting = program(site, "nova-conductor", "nova.cmd.conductor");
    let answering = program(site, "nova-api-os-compute", "nova.cmd.api_os_compute");
    Ok(vec![
        Daemon::start(site, "nova-conductor", conducting)?,
        Daemon::start(site, "nova-scheduler", asking(scheduling))?,
        Daemon::start(site, "nova-api", asking(answering))?.at(site.ports.nova),
    ])
}
