//! Keystone on MariaDB, with all users of the cloud.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::json;

use crate::error::LabError;
use crate::home::random_password;
use crate::openstack::daemon::Daemon;
use crate::openstack::options::OPENSTACK_PASSWORD;
use crate::openstack::program::Program;
use crate::openstack::site::{REGION, Site};
use crate::openstack::wsgi;

const KEYS: [&str; 3] = ["tokens", "receipts", "credentials"];

pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    for folder in KEYS {
        site.make_state(folder)?;
        for number in ["0", "1"] {
            let key = URL_SAFE.encode(random_password()?);
            site.home.write(&format!("state/{folder}/{number}"), &key)?;
        }
    }
    let [tokens, receipts, credentials] = KEYS.map(|folder| site.home.text(&format!("state/{folder}")));
    let database = site.database("keystone");
    let text = format!(
        "[DEFAULT]
use_stderr = true
[database]
connection = {database}
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = {tokens}
[fernet_receipts]
key_repository = {receipts}
[credential]
key_repository = {credentials}
# Right only as long as there is one process.
[cache]
enabled = true
backend = dogpile.cache.memory
[identity]
password_hash_algorithm = bcrypt
password_hash_rounds = 4
"
    );
    site.configure("keystone.conf", &text).map(|_| ())
}

/// Makes the tables, the users and the catalogue. [`point_catalogue`] adds the catalogue's addresses.
pub(crate) fn seed(site: &Site) -> Result<(), LabError> {
    let services: Vec<_> = site
        .endpoints()
        .into_iter()
        .filter(|(name, _, _)| *name != "keystone")
        .map(|(name, kind, _)| [name, kind])
        .collect();
    let specification = json!({
        "password": OPENSTACK_PASSWORD,
        "region": REGION,
        "projects": ["service", "demo"],
        "users": users(),
        "services": services,
    });
    Program::script(site.folder(), "keystone_seed.py")
        .arguments([site.etc("keystone.conf"), specification.to_string()])
        .run("keystone_seed.py")
}

fn users() -> Vec<serde_json::Value> {
    let of_services = [
        "placement",
        "nova",
        "cinder",
        "neutron",
        "ironic",
        "masakari",
        "fencing",
    ];
    let user =
        |name: &str, project: &str, roles: &[&str]| json!({"name": name, "project": project, "roles": roles});
    let mut all: Vec<_> = of_services
        .iter()
        .map(|name| user(name, "service", &["admin", "service"]))
        .collect();
    all.push(user("fencing-reader", "service", &["reader"]));
    all.push(user("demo", "demo", &["member"]));
    all
}

/// Statements that write the services' addresses into the catalogue.
pub(crate) fn point_catalogue(site: &Site) -> String {
    let statement = |(_, kind, url): (&str, &str, String)| {
        format!(
            "update keystone.endpoint e join keystone.service s on s.id = e.service_id set e.url = '{url}' \
             where s.type = '{kind}';\n"
        )
    };
    site.endpoints().into_iter().map(statement).collect()
}

pub(crate) fn start(site: &Site) -> Result<Daemon, LabError> {
    let program = wsgi::program("/usr/bin/keystone-wsgi-public", site.ports.keystone)
        .with("OS_KEYSTONE_CONFIG_FILES", site.etc("keystone.conf"));
    Ok(Daemon::start(site, "keystone", program)?.at(site.ports.keystone))
}
