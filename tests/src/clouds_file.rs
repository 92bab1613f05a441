//! A `clouds.yaml` with several entries for the run's OpenStack.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringfence_lab::{Cloud, OPENSTACK_PASSWORD, User};

/// An entry of the file.
#[derive(Clone)]
pub struct Entry {
    name: String,
    auth_url: String,
    user: String,
    project: String,
    password: String,
    region: String,
    more: String,
}

impl Entry {
    /// An entry with the right address, user and password.
    pub fn new(name: &str, cloud: &Cloud) -> Self {
        let description = cloud.description();
        Self {
            name: name.to_owned(),
            auth_url: description.auth_url.clone(),
            user: User::Fencing.name().to_owned(),
            project: User::Fencing.project().to_owned(),
            password: OPENSTACK_PASSWORD.to_owned(),
            region: description.region.clone(),
            more: String::new(),
        }
    }

    pub fn user(self, user: &str) -> Self {
        let user = user.to_owned();
        Self { user, ..self }
    }

    pub fn project(self, project: &str) -> Self {
        let project = project.to_owned();
        Self { project, ..self }
    }

    pub fn password(self, password: &str) -> Self {
        let password = password.to_owned();
        Self { password, ..self }
    }

    pub fn region(self, region: &str) -> Self {
        let region = region.to_owned();
        Self { region, ..self }
    }

    pub fn keystone_at(self, address: &str) -> Self {
        let auth_url = format!("http://{address}/v3");
        Self { auth_url, ..self }
    }

    /// Overrides the address of Nova that the catalogue names.
    pub fn nova_at(self, url: &str) -> Self {
        let more = format!("    compute_endpoint_override: {url}\n");
        Self { more, ..self }
    }

    fn text(&self) -> String {
        format!(
            "  {}:\n    auth:\n      auth_url: {}\n      username: {}\n      password: {}\n      project_name: {}\n      \
             user_domain_name: Default\n      project_domain_name: Default\n    region_name: {}\n{}",
            self.name, self.auth_url, self.user, self.password, self.project, self.region, self.more
        )
    }
}

/// Writes the file, readable for its owner only.
pub fn write(path: &Path, entries: &[Entry]) {
    let entries: String = entries.iter().map(Entry::text).collect();
    std::fs::write(path, format!("clouds:\n{entries}")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
