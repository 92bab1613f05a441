//! The parts of a run that can be left out.

use crate::say::say;

/// A peer that costs more than the others.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Costly {
    /// 640 MB of packages to install once; then half a minute and 1.6 GiB of memory for every run
    Openstack,
    /// 110 MB of packages to install once; then some minutes of a core for every run of the tests
    Vm,
    /// 160 MB of packages and some minutes to build once; then half a gigabyte of memory for each test's Kubernetes
    Kubernetes,
    /// 45 MB of packages to unpack once; then 120 MB of memory for each test's Ceph
    Ceph,
    /// 130 MB of packages to install once, and 360 MB of tools; then 300 MB of memory for each test's browser
    Page,
}

/// The parts to leave out.
#[derive(clap::Args)]
pub struct Without {
    /// Leaves a costly peer out, and the tests that need it
    #[arg(long, value_enum, value_name = "PEER")]
    without: Vec<Costly>,
}

impl Without {
    /// Whether the run has an OpenStack.
    pub fn has_openstack(&self) -> bool {
        !self.without.contains(&Costly::Openstack)
    }

    /// Whether the run has virtual hosts.
    pub fn has_vm(&self) -> bool {
        !self.without.contains(&Costly::Vm)
    }

    /// Whether the run has the programs of a Kubernetes.
    pub fn has_kubernetes(&self) -> bool {
        !self.without.contains(&Costly::Kubernetes)
    }

    /// Whether the run has the programs of a Ceph.
    pub fn has_ceph(&self) -> bool {
        !self.without.contains(&Costly::Ceph)
    }

    /// Whether the run has a browser and the tools of the operator's page.
    pub fn has_page(&self) -> bool {
        !self.without.contains(&Costly::Page)
    }
}

/// The tests that a run leaves out, and why.
#[derive(Default)]
pub struct LeftOut {
    /// The tests with OpenStack.
    pub openstack: Option<String>,
    /// The tests with virtual hosts.
    pub vm: Option<String>,
    /// The tests with Kubernetes.
    pub kubernetes: Option<String>,
    /// The tests with Ceph.
    pub ceph: Option<String>,
    /// The tests of the operator's page.
    pub page: Option<String>,
}

impl LeftOut {
    /// What the options leave out.
    pub fn asked(without: &Without) -> Self {
        let because =
            |is_there: bool, flag: &str| (!is_there).then(|| format!("because of --without {flag}"));
        Self {
            openstack: because(without.has_openstack(), "openstack"),
            vm: because(without.has_vm(), "vm"),
            kubernetes: because(without.has_kubernetes(), "kubernetes"),
            ceph: because(without.has_ceph(), "ceph"),
            page: because(without.has_page(), "page"),
        }
    }

    /// Prints what was left out: a run that passes must not look as if it had tested everything.
    pub fn say(&self) {
        let parts = [
            ("OpenStack", &self.openstack),
            ("virtual hosts", &self.vm),
            ("Kubernetes", &self.kubernetes),
            ("Ceph", &self.ceph),
            ("the operator's page", &self.page),
        ];
        for (what, why) in parts {
            if let Some(why) = why {
                say(&format!("NOT TESTED: everything with {what}, {why}"));
            }
        }
    }

    /// The modules of the tests that are left out.
    pub fn modules(&self) -> impl Iterator<Item = &'static str> {
        let parts = [
            ("openstack::", &self.openstack),
            ("real_hosts::", &self.vm),
            ("kubernetes::", &self.kubernetes),
            ("ceph::", &self.ceph),
            ("dashboard::", &self.page),
        ];
        let left_out = parts.into_iter().filter(|(_, why)| why.is_some());
        left_out.map(|(module, _)| module)
    }
}
