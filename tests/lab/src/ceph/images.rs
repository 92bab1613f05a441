//! Images, and clients that keep them open.

use super::{Ceph, POOL};
use crate::error::LabError;
use crate::leash::{Leash, Start};

/// A client that keeps an image open. Dropped, it is killed and says nothing to the cluster, as where its host loses power.
#[derive(Debug)]
pub struct CephClient(Leash);

impl Drop for CephClient {
    fn drop(&mut self) {
        self.0.crash();
    }
}

impl Ceph {
    /// Makes an image.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make_image(&self, name: &str) -> Result<(), LabError> {
        let make = ["create", "--size", "1M", &format!("{POOL}/{name}")];
        self.tools().run("rbd", &make).map(|_| ())
    }

    /// Starts a client that keeps an image open. Waits until the image's OSD knows.
    ///
    /// # Errors
    /// If the client cannot be run, or the OSD knows of no client within a minute.
    pub fn open_image(&self, name: &str) -> Result<CephClient, LabError> {
        let log = self.home.join("client.log");
        let program = self.home.join("rbd-watch");
        let mut start = Start::new(&program, &log, self.home.path());
        start.environment = self.tools().environment();
        start.arguments = vec![format!("{POOL}/{name}")];
        let client = CephClient(Leash::start(start)?);
        self.until("an image is open", |cluster| cluster.is_open(name))?;
        Ok(client)
    }

    /// Whether the image's OSD has a client on record that has it open.
    ///
    /// # Errors
    /// If Ceph does not tell.
    pub fn is_open(&self, name: &str) -> Result<bool, LabError> {
        let told = self.tools().run("rbd", &["status", &format!("{POOL}/{name}")])?;
        Ok(told.contains("watcher="))
    }

    /// The OSD that serves the image.
    ///
    /// # Errors
    /// If Ceph does not tell.
    pub fn osd_of(&self, name: &str) -> Result<usize, LabError> {
        let told = self.tools().run("rbd", &["info", &format!("{POOL}/{name}")])?;
        let id = told.lines().find_map(|line| line.trim().strip_prefix("id: "));
        let header = format!("rbd_header.{}", id.unwrap_or_default());
        let told = self.ceph(&["osd", "map", POOL, &header])?;
        // As in `up ([1,0], p1) acting ([1,0], p1)`.
        let primary = told
            .rsplit_once('p')
            .map(|(_, rest)| rest.trim_end_matches(['\n', ')']));
        let primary = primary.and_then(|osd| osd.parse().ok());
        primary.ok_or(LabError::Failed {
            program: "ceph osd map".to_owned(),
            output: told,
        })
    }
}
