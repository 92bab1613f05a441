//! The cloud on which all recoveries are measured.

use std::path::Path;

use ringfence_lab::{Cloud, MasakariSettings, OpenStack, OpenStackOptions, Services};
use tokio::task::block_in_place;

use super::Pair;
use crate::error::BenchError;

/// A Nova with Masakari, without hosts at first.
pub struct Rig {
    cloud: Cloud,
    /// Nova never forgets a name: each pair has its own names.
    pairs: usize,
    openstack: OpenStack,
}

impl Rig {
    pub fn start(parts: &Path, masakari: MasakariSettings) -> Result<Self, BenchError> {
        let openstack = OpenStack::start(&OpenStackOptions {
            services: Services::WithMasakari,
            masakari,
            ..OpenStackOptions::new(parts)
        })?;
        Ok(Self {
            cloud: Cloud::new(openstack.description()),
            pairs: 0,
            openstack,
        })
    }

    /// Two new hosts, with so many servers on the first.
    pub fn pair(&mut self, servers: usize) -> Result<Pair, BenchError> {
        self.pairs += 1;
        Pair::make(&self.cloud, self.pairs, servers)
    }

    /// Calls `act` with two new hosts, and removes them.
    pub fn with_pair<T>(
        &mut self,
        servers: usize,
        work: impl FnOnce(&Pair) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        block_in_place(|| {
            let pair = self.pair(servers)?;
            let done = work(&pair)?;
            pair.remove();
            Ok(done)
        })
    }

    pub fn change_masakari(&mut self, settings: MasakariSettings) -> Result<(), BenchError> {
        Ok(block_in_place(|| self.openstack.change_masakari(settings))?)
    }
}
