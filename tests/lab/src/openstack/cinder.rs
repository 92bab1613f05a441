//! Cinder with volumes that exist only in its log.

use crate::error::LabError;
use crate::openstack::daemon::Daemon;
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// Log levels: calls of the driver at debug, everything else at the default.
const LOG_LEVELS: &str = "cinder.tests.fake_driver=DEBUG,amqp=WARN,sqlalchemy=WARN,oslo_messaging=INFO,urllib3=WARN,\
                          keystonemiddleware=WARN,stevedore=WARN,taskflow=WARN,oslo_policy=INFO";

pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    let broker = &site.broker;
    let state = site.make_state("cinder")?;
    let port = site.ports.cinder;
    let image = site.ports.image;
    let paste = site.etc("cinder-api-paste.ini");
    let filters = site.etc("resource_filters.json");
    let database = site.database("cinder");
    let lock = site.home.text("lock");
    let keystone = site.auth("keystone_authtoken", "cinder");
    let service_user = site.auth("service_user", "cinder");
    let text = format!(
        "[DEFAULT]
transport_url = {broker}
my_ip = 127.0.0.1
host = controller
state_path = {state}
osapi_volume_listen = 127.0.0.1
osapi_volume_listen_port = {port}
osapi_volume_workers = 1
api_paste_config = {paste}
resource_query_filters_file = {filters}
enabled_backends = logged
quota_volumes = -1
quota_gigabytes = -1
auth_strategy = keystone
glance_api_servers = http://127.0.0.1:{image}
report_interval = 2
service_down_time = 12
periodic_fuzzy_delay = 0
default_log_levels = {LOG_LEVELS}
[logged]
volume_driver = cinder.tests.fake_driver.FakeLoggingVolumeDriver
volume_backend_name = logged
trace_flags = method
[database]
connection = {database}
[oslo_concurrency]
lock_path = {lock}
[nova]
auth_section = keystone_authtoken
interface = internal
{keystone}{service_user}send_service_user_token = true
"
    );
    site.configure("cinder.conf", &text).map(|_| ())
}

pub(crate) fn seed(site: &Site) -> Result<(), LabError> {
    program(site, "cinder-manage", "cinder.cmd.manage")
        .arguments(["db", "sync"].map(str::to_owned))
        .run("cinder-manage db sync")
}

pub(crate) fn start(site: &Site) -> Result<Vec<Daemon>, LabError> {
    let start = |name, module| Daemon::start(site, name, program(site, name, module));
    Ok(vec![
        start("cinder-volume", "cinder.cmd.volume")?,
        start("cinder-scheduler", "cinder.cmd.scheduler")?,
        start("cinder-api", "cinder.cmd.api")?.at(site.ports.cinder),
    ])
}

fn program(site: &Site, name: &str, module: &str) -> Program {
    Program::python(site.folder(), name, module).configured([site.etc("cinder.conf")])
}
