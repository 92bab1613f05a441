//! Names and addresses that the services of one cloud share.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::home::Home;
use crate::net::free_tcp_ports;
use crate::openstack::options::OPENSTACK_PASSWORD;
use crate::openstack::options::Services;

/// The region of all services.
pub(crate) const REGION: &str = "RegionOne";

/// The ports of the services.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub keystone: u16,
    pub placement: u16,
    pub nova: u16,
    pub image: u16,
    pub network: u16,
    pub cinder: u16,
    pub ironic: u16,
    pub masakari: u16,
}

/// The folder, the ports and the addresses of one cloud.
#[derive(Debug)]
pub(crate) struct Site {
    pub home: Home,
    pub ports: Ports,
    pub services: Services,
    /// The broker's address as oslo.messaging writes it.
    pub broker: String,
}

impl Site {
    pub(crate) fn new(services: Services) -> Result<Self, LabError> {
        let home = Home::new("openstack")?;
        for folder in ["etc", "log", "state", "lock", "agents"] {
            home.make_folder(folder)?;
        }
        let [
            keystone,
            placement,
            nova,
            image,
            network,
            cinder,
            ironic,
            masakari,
        ] = free_tcp_ports()?;
        Ok(Self {
            home,
            ports: Ports {
                keystone,
                placement,
                nova,
                image,
                network,
                cinder,
                ironic,
                masakari,
            },
            services,
            // Seeding needs no broker, and no service connects to this address.
            broker: "rabbit://unused@127.0.0.1:1/".to_owned(),
        })
    }

    /// Sets the broker's address from a URL.
    pub(crate) fn set_broker(&mut self, url: &str) {
        let address = url.trim_start_matches("amqp").trim_end_matches("%2f");
        self.broker = format!("rabbit{address}");
    }

    pub(crate) fn folder(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn etc(&self, name: &str) -> String {
        self.home.text(&format!("etc/{name}"))
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.home.join(&format!("log/{name}.log"))
    }

    pub(crate) fn configure(&self, name: &str, text: &str) -> Result<PathBuf, LabError> {
        self.home.write(&format!("etc/{name}"), text)
    }

    pub(crate) fn make_state(&self, name: &str) -> Result<String, LabError> {
        let folder = self.home.make_folder(&format!("state/{name}"))?;
        Ok(folder.display().to_string())
    }

    /// The address of a database as SQLAlchemy writes it.
    pub(crate) fn database(&self, name: &str) -> String {
        format!(
            "mysql+pymysql://root@localhost/{name}?unix_socket={}&charset=utf8",
            self.home.text("mysql.sock")
        )
    }

    pub(crate) fn keystone_url(&self) -> String {
        format!("http://127.0.0.1:{}/v3", self.ports.keystone)
    }

    /// A configuration section by which a service signs in as a user, and validates callers' tokens.
    pub(crate) fn auth(&self, section: &str, user: &str) -> String {
        let url = self.keystone_url();
        let password = OPENSTACK_PASSWORD;
        format!(
            "[{section}]
www_authenticate_uri = {url}
auth_url = {url}
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = {user}
password = {password}
region_name = {REGION}
service_token_roles = service
service_token_roles_required = true
"
        )
    }

    /// The services that Keystone's catalogue names: name, type and address.
    pub(crate) fn endpoints(&self) -> Vec<(&'static str, &'static str, String)> {
        let ports = self.ports;
        let at = |port: u16, path: &str| format!("http://127.0.0.1:{port}{path}");
        let mut all = vec![
            ("keystone", "identity", at(ports.keystone, "/v3")),
            ("placement", "placement", at(ports.placement, "")),
            ("nova", "compute", at(ports.nova, "/v2.1")),
            ("glance", "image", at(ports.image, "")),
            ("neutron", "network", at(ports.network, "")),
        ];
        if self.services.has_more_than_core() {
            all.push(("cinder", "volumev3", at(ports.cinder, "/v3/%(project_id)s")));
            all.push(("ironic", "baremetal", at(ports.ironic, "")));
        }
        if self.services.has_masakari() {
            all.push(("masakari", "instance-ha", at(ports.masakari, "/v1/%(tenant_id)s")));
        }
        all
    }
}
