//! Databases of installed services that have never run: made once, and copied for every start.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{During, LabError};
use crate::home::tail;
use crate::openstack::mariadb::MariaDb;
use crate::openstack::options::{OpenStackOptions, Services};
use crate::openstack::program::SCRIPTS;
use crate::openstack::site::Site;
use crate::openstack::{cinder, configure, ironic, keystone, masakari, neutron, nova, placement};

/// Increased when the seeded data change without a change of the packages.
const EDITION: u32 = 1;

/// The data folder of a MariaDB with every table and user. It is made anew if it is of other packages.
pub(crate) fn provide(options: &OpenStackOptions) -> Result<PathBuf, LabError> {
    let folder = options.parts.join("seed").join(options.services.name());
    std::fs::create_dir_all(&folder).during(|| format!("making {}", folder.display()))?;
    let _turn = take_turn(&folder)?;
    let (data, stamp) = (folder.join("mysql"), folder.join("made-of"));
    let made_of = ingredients(options.services)?;
    if std::fs::read_to_string(&stamp).is_ok_and(|before| before == made_of) {
        return Ok(data);
    }
    for old in [&stamp, &data] {
        run(Command::new("rm").arg("-rf").arg(old), "rm")?;
    }
    let site = Site::new(options.services)?;
    make(&site, options)?;
    copy(&site.home.join("mysql"), &data)?;
    std::fs::write(&stamp, made_of).during(|| format!("writing {}", stamp.display()))?;
    Ok(data)
}

/// Copies a data folder.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), LabError> {
    run(
        Command::new("cp")
            .args(["-a", "--reflink=auto"])
            .arg(from)
            .arg(to),
        "cp",
    )
}

fn make(site: &Site, options: &OpenStackOptions) -> Result<(), LabError> {
    configure(site, options)?;
    MariaDb::install(&site.home.join("mysql"))?;
    let server = MariaDb::start(site.folder())?;
    server.run(&databases(options.services))?;
    std::thread::scope(|scope| {
        // Two lanes, because there are two cores at least; both take about equally long.
        let first = scope.spawn(|| first_lane(site));
        let second = second_lane(site, &server);
        first
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .and(second)
    })?;
    server.stop();
    Ok(())
}

fn first_lane(site: &Site) -> Result<(), LabError> {
    keystone::seed(site)?;
    placement::seed(site)?;
    if site.services.has_more_than_core() {
        cinder::seed(site)?;
        ironic::seed(site)?;
    }
    Ok(())
}

fn second_lane(site: &Site, server: &MariaDb) -> Result<(), LabError> {
    nova::seed_api(site)?;
    server.run(nova::make_cells())?;
    server.run(&nova::point_cells(site))?;
    nova::seed_cells(site)?;
    if site.services.has_more_than_core() {
        neutron::seed(site)?;
    }
    if site.services.has_masakari() {
        masakari::seed(site)?;
    }
    Ok(())
}

fn databases(services: Services) -> String {
    let mut names = vec!["keystone", "placement", "nova_api", "nova_cell0", "nova_cell1"];
    if services.has_more_than_core() {
        names.extend(["cinder", "neutron", "ironic"]);
    }
    if services.has_masakari() {
        names.push("masakari");
    }
    let make = |name: &&str| format!("create database {name} character set utf8;\n");
    names.iter().map(make).collect()
}

/// Everything that the seed depends on, as a text.
fn ingredients(services: Services) -> Result<String, LabError> {
    let packages = [
        "mariadb-server-core",
        "python3-keystone",
        "python3-placement",
        "python3-nova",
        "python3-cinder",
        "python3-neutron",
        "python3-ironic",
        "python3-masakari",
    ];
    let done = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${Version}\n"])
        .args(packages)
        .output()
        .during(|| "running dpkg-query".to_owned())?;
    // dpkg-query fails if a package is missing, which may be one that these services do not need.
    let versions = String::from_utf8_lossy(&done.stdout);
    let scripts: String = SCRIPTS
        .iter()
        .filter(|(name, _)| *name == "keystone_seed.py")
        .map(|(_, text)| *text)
        .collect();
    Ok(format!(
        "edition {EDITION}\n{}\n{versions}{scripts}",
        services.name()
    ))
}

fn run(command: &mut Command, what: &str) -> Result<(), LabError> {
    let done = command.output().during(|| format!("running {what}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(LabError::Failed {
        program: what.to_owned(),
        output: tail(&done.stderr),
    })
}

/// Waits until no other run makes the seed. The lock ends with the value.
fn take_turn(folder: &Path) -> Result<File, LabError> {
    let path = folder.join("lock");
    File::create(&path)
        .and_then(|file| file.lock().map(|()| file))
        .during(|| format!("locking {}", path.display()))
}
