//! Masakari, for comparison in benchmarks.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::options::MasakariSettings;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// The service that reads the settings which a test may change.
pub(crate) const ENGINE: &str = "masakari-engine";

pub(crate) fn configure(site: &Site, settings: MasakariSettings) -> Result<(), LabError> {
    let MasakariSettings { wait_s, at_once } = settings;
    let broker = &site.broker;
    let state = site.make_state("masakari")?;
    let port = site.ports.masakari;
    let keystone_url = site.keystone_url();
    let paste = site.etc("masakari-api-paste.ini");
    let database = site.database("masakari");
    let lock = site.home.text("lock");
    let keystone = site.auth("keystone_authtoken", "masakari");
    let text = format!(
        "[DEFAULT]
transport_url = {broker}
masakari_api_listen = 127.0.0.1
masakari_api_listen_port = {port}
masakari_api_workers = 1
auth_strategy = keystone
host = controller
state_path = {state}
nova_catalog_admin_info = compute:nova:internalURL
os_privileged_user_name = masakari
os_privileged_user_password = secret
os_privileged_user_tenant = service
os_privileged_user_auth_url = {keystone_url}
os_user_domain_name = Default
os_project_domain_name = Default
os_system_scope =
wait_period_after_service_update = {wait_s}
host_failure_recovery_threads = {at_once}
duplicate_notification_detection_interval = 10
process_unfinished_notifications_interval = 20
retry_notification_new_status_interval = 20
verify_interval = 1
[wsgi]
api_paste_config = {paste}
[host_failure]
evacuate_all_instances = true
ignore_instances_in_error_state = false
add_reserved_host_to_aggregate = false
[database]
connection = {database}
[oslo_concurrency]
lock_path = {lock}
{keystone}"
    );
    site.configure("masakari.conf", &text).map(|_| ())
}

pub(crate) fn seed(site: &Site) -> Result<(), LabError> {
    Program::new("/usr/bin/masakari-manage")
        .configured([site.etc("masakari.conf")])
        .arguments(["db", "sync"].map(str::to_owned))
        .run("masakari-manage db sync")
}

pub(crate) fn start(site: &Site) -> Result<Vec<Daemon>, LabError> {
    Ok(vec![
        start_engine(site)?,
        Daemon::start(
            site,
            "masakari-api",
            program(site, "masakari-api", "masakari.cmd.api"),
        )?
        .at(site.ports.masakari),
    ])
}

/// Starts the engine, which also handles notifications that were queued before its start.
pub(crate) fn start_engine(site: &Site) -> Result<Daemon, LabError> {
    Daemon::start(site, ENGINE, program(site, ENGINE, "masakari.cmd.engine"))
}

fn program(site: &Site, name: &str, module: &str) -> Program {
    Program::script(site.folder(), "run_masakari.py")
        .arguments([name.to_owned(), module.to_owned()])
        .configured([site.etc("masakari.conf")])
}
