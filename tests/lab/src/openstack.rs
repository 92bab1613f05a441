//! A real OpenStack of Debian's packages: Keystone, Placement and Nova, with Cinder, Neutron, Ironic and Masakari as wanted.
//!
//! One OpenStack serves all tests of a run, because its start is slow. The run starts it and passes its [`Description`] in a file; each
//! test adds computes of its own through a [`Cloud`](crate::Cloud).

mod cinder;
mod daemon;
pub(crate) mod gate;
mod ironic;
mod keystone;
mod mariadb;
mod masakari;
mod neutron;
mod nova;
mod options;
mod placement;
pub(crate) mod program;
mod ready;
mod seed;
mod site;
mod stand_ins;
mod wsgi;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cloud::{Api, Cloud, Description};
use crate::error::{During, LabError};
use crate::openstack::daemon::Daemon;
pub use crate::openstack::gate::{HOOK_CLOUD, HOOK_TOKEN};
use crate::openstack::mariadb::MariaDb;
pub use crate::openstack::options::{MasakariSettings, OPENSTACK_PASSWORD, OpenStackOptions, Services};
use crate::openstack::program::SCRIPTS;
use crate::openstack::site::{REGION, Site};
use crate::rabbitmq::RabbitMq;

/// The flavour that every server has.
pub(crate) const FLAVOR: &str = "tiny";
/// The only image, from which every server is made.
pub(crate) const IMAGE: &str = "11111111-1111-4111-8111-111111111111";

/// A running OpenStack. It ends when the value is dropped.
#[derive(Debug)]
pub struct OpenStack {
    daemons: Vec<Daemon>,
    database: MariaDb,
    broker: RabbitMq,
    site: Site,
}

impl OpenStack {
    /// Starts the services, and before that makes their databases, unless the cache has them for these packages.
    ///
    /// # Errors
    /// If a package is not installed, or a service does not become ready within three minutes.
    pub fn start(options: &OpenStackOptions) -> Result<Self, LabError> {
        let seed = seed::provide(options)?;
        let mut site = Site::new(options.services)?;
        let (broker, database) = std::thread::scope(|scope| {
            let broker = scope.spawn(RabbitMq::start);
            let database =
                seed::copy(&seed, &site.home.join("mysql")).and_then(|()| MariaDb::start(site.folder()));
            let broker = broker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (broker, database)
        });
        let (broker, database) = (broker?, database?);
        site.set_broker(&broker.url());
        configure(&site, options)?;
        database.run(&(keystone::point_catalogue(&site) + &nova::point_cells(&site)))?;
        let mut cloud = Self {
            daemons: Vec::new(),
            database,
            broker,
            site,
        };
        cloud.start_services()?;
        let seen_by_users = Cloud::new(cloud.description());
        ready::wait(&mut cloud.daemons, &seen_by_users)?;
        make_flavor(&seen_by_users)?;
        Ok(cloud)
    }

    /// The description, for the tests of this run.
    #[must_use]
    pub fn description(&self) -> Description {
        let endpoints = self.site.endpoints().into_iter();
        Description {
            auth_url: self.site.keystone_url(),
            region: REGION.to_owned(),
            broker_url: self.broker.url(),
            folder: self.site.folder().to_owned(),
            hook: gate::address(self.site.ports.nova),
            endpoints: endpoints.map(|(_, kind, url)| (kind.to_owned(), url)).collect(),
        }
    }

    /// Writes the description beside the services' files, and returns its path. It is removed with these files.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_description(&self) -> Result<PathBuf, LabError> {
        let file = self.site.home.join("description.json");
        self.description().write(&file)?;
        Ok(file)
    }

    /// The processes' logs, one file for each.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.site.home.join("log")
    }

    /// Changes Masakari's settings by starting its engine again. The engine is ready when it has handled a notification, which is not
    /// waited for.
    ///
    /// # Errors
    /// If there is no Masakari, or its engine cannot be started.
    pub fn change_masakari(&mut self, settings: MasakariSettings) -> Result<(), LabError> {
        let is_it = |daemon: &&mut Daemon| daemon.name() == masakari::ENGINE;
        let Some(engine) = self.daemons.iter_mut().find(is_it) else {
            return Err(LabError::NotSeen {
                what: format!("a process of {}", masakari::ENGINE),
                seconds: 0,
                seen: "none".to_owned(),
            });
        };
        engine.crash();
        masakari::configure(&self.site, settings)?;
        *engine = masakari::start_engine(&self.site)?;
        Ok(())
    }

    /// Starts the slowest services first, because all wait for the computer's cores.
    fn start_services(&mut self) -> Result<(), LabError> {
        let site = &self.site;
        let daemons = &mut self.daemons;
        daemons.push(keystone::start(site)?);
        daemons.extend(nova::start(site)?);
        daemons.push(placement::start(site)?);
        daemons.push(stand_ins::start_image(site)?);
        if site.services.has_more_than_core() {
            daemons.extend(neutron::start(site)?);
            daemons.extend(cinder::start(site)?);
            daemons.push(ironic::start(site)?);
        } else {
            daemons.push(stand_ins::start_network(site)?);
        }
        if site.services.has_masakari() {
            daemons.extend(masakari::start(site)?);
        }
        Ok(())
    }
}

impl Drop for OpenStack {
    /// Kills all services: none has data to keep.
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            daemon.crash();
        }
        self.database.crash();
        // If that fails, the leash stops it in order.
        let _ = self.broker.crash();
    }
}

fn make_flavor(cloud: &Cloud) -> Result<(), LabError> {
    let flavor = json!({"id": FLAVOR, "name": FLAVOR, "ram": 64, "vcpus": 1, "disk": 1});
    cloud
        .post(Api::Compute, "/flavors", json!({"flavor": flavor}))
        .map(|_| ())
}

/// Writes the scripts and the configuration of every service.
fn configure(site: &Site, options: &OpenStackOptions) -> Result<(), LabError> {
    site.home.make_folder("programs")?;
    for (name, text) in SCRIPTS {
        site.home.write(&format!("programs/{name}"), text)?;
    }
    copy_paste_files(site, &options.parts)?;
    keystone::configure(site)?;
    placement::configure(site)?;
    nova::configure(site)?;
    gate::configure(site)?;
    if site.services.has_more_than_core() {
        cinder::configure(site)?;
        neutron::configure(site)?;
        ironic::configure(site)?;
    }
    if site.services.has_masakari() {
        masakari::configure(site, options.masakari)?;
    }
    Ok(())
}

fn copy_paste_files(site: &Site, parts: &Path) -> Result<(), LabError> {
    let folder = parts.join("paste");
    let reading = || format!("reading {}", folder.display());
    for entry in std::fs::read_dir(&folder).during(reading)? {
        let entry = entry.during(reading)?;
        let text = std::fs::read_to_string(entry.path()).during(reading)?;
        site.configure(&entry.file_name().to_string_lossy(), &text)?;
    }
    Ok(())
}
