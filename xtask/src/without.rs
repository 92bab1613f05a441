//! What can be left out of a run.

use crate::say::say;

/// A peer that costs more than the others.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Costly {
    /// 640 MB of packages to install once; then half a minute and 1.6 GiB of memory for every run
    Openstack,
}

/// What is left out.
#[derive(clap::Args)]
pub struct Without {
    /// Leaves a costly peer out, and the tests that need it
    #[arg(long, value_enum, value_name = "PEER")]
    without: Vec<Costly>,
}

impl Without {
    /// Whether there is to be an OpenStack.
    pub fn has_openstack(&self) -> bool {
        !self.without.contains(&Costly::Openstack)
    }

    /// Tells that something was left out: a run that passes must not look as if it had tested everything.
    pub fn say(&self) {
        if !self.has_openstack() {
            say("NOT TESTED: everything with OpenStack, because of --without openstack");
        }
    }
}
