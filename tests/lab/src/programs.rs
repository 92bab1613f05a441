//! The paths of the peers' programs.

use std::path::{Path, PathBuf};

/// The programs of PostgreSQL's server, which Debian installs outside `PATH`.
pub const POSTGRESQL_PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_isready"];

/// The folder with PostgreSQL's server programs: the newest that Debian installed, or the one in `PATH`.
#[must_use]
pub fn find_postgresql() -> Option<PathBuf> {
    let is_complete = |folder: &Path| POSTGRESQL_PROGRAMS.iter().all(|p| folder.join(p).is_file());
    let version = |folder: &PathBuf| -> Option<u32> { folder.file_name()?.to_str()?.parse().ok() };
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| version(folder).is_some())
        .collect();
    versions.sort_by_key(version);
    let debian = versions.into_iter().rev().map(|folder| folder.join("bin"));
    debian.chain(path_folders()).find(|folder| is_complete(folder))
}

/// The folder with RabbitMQ's own scripts; the one in `PATH` is a wrapper that requires a certain user.
#[must_use]
pub fn rabbitmq_folder() -> Option<PathBuf> {
    let folder = PathBuf::from("/usr/lib/rabbitmq/bin");
    if folder.join("rabbitmq-server").is_file() {
        return Some(folder);
    }
    find_program("rabbitmq-server")?.parent().map(Path::to_owned)
}

/// Finds a program in `PATH` and in the system folders, which the `PATH` of an ordinary user may lack.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let system = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    path_folders()
        .chain(system)
        .map(|folder| folder.join(name))
        .find(|p| p.is_file())
}

fn path_folders() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect::<Vec<_>>().into_iter()
}
