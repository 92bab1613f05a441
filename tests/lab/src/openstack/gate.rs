//! Ringfence's filter in Nova's scheduler and its gate in Nova's API. They ask a scheduler hook that a test may start, and allow
//! everything while no hook runs.

use std::net::{Ipv4Addr, SocketAddr};

use crate::error::{During, LabError};
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// The token that filter and gate send to the hook.
pub const HOOK_TOKEN: &str = "token-of-nova";
/// The name of the cloud in their questions.
pub const HOOK_CLOUD: &str = "lab";

/// The section of `nova.conf` that they read.
pub(crate) const SETTINGS: &str = "nova-ringfence.conf";
pub(crate) const FILTER: &str = "ringfence_nova.filter.RingfenceFilter";
/// The Python package's folder.
pub(crate) const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scheduler-hook/nova");

const PORT: u16 = 8791;
const BEFORE: &str = " keystonecontext ";
const BEHIND: &str = " keystonecontext ringfence ";

/// The address of a test's hook. No other program listens there: the address belongs to this OpenStack alone.
pub(crate) fn address(nova: u16) -> SocketAddr {
    let [high, low] = nova.to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(127, 79, high, low), PORT))
}

/// Writes the configuration of filter and gate, with the token in a separate file.
pub(crate) fn configure(site: &Site) -> Result<(), LabError> {
    let token = site.configure("ringfence.token", HOOK_TOKEN)?;
    let (address, token) = (address(site.ports.nova), token.display());
    let settings = format!(
        "[ringfence]\nurls = http://{address}\ntoken_file = {token}\ncloud = {HOOK_CLOUD}\non_error = open\n"
    );
    site.configure(SETTINGS, &settings)?;
    let paste = site.etc("nova-api-paste.ini");
    let text = std::fs::read_to_string(&paste).during(|| format!("reading {paste}"))?;
    let filter = "[filter:ringfence]\npaste.filter_factory = ringfence_nova.middleware:filter_factory\n";
    let text = format!("{}\n{filter}", text.replace(BEFORE, BEHIND));
    site.configure("nova-api-paste.ini", &text).map(|_| ())
}

/// A program with the filter or the gate.
pub(crate) fn asking(program: Program, settings: String) -> Program {
    program
        .configured([settings])
        .with("PYTHONPATH", PACKAGE.to_owned())
}
