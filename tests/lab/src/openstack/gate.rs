//! Ringfence's filter in the scheduler and its gate in the API of Nova. They ask a hook that a test may start, and are open while there
//! is none.

use std::net::{Ipv4Addr, SocketAddr};

use crate::error::{During, LabError};
use crate::openstack::program::Program;
use crate::openstack::site::Site;

/// What they show to the hook.
pub const HOOK_TOKEN: &str = "token-of-nova";
/// By what name they know the cloud.
pub const HOOK_CLOUD: &str = "lab";

/// The section of `nova.conf`, read by the programs that ask.
pub(crate) const SETTINGS: &str = "nova-ringfence.conf";
pub(crate) const FILTER: &str = "ringfence_nova.filter.RingfenceFilter";
/// The Python package's folder.
pub(crate) const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scheduler-hook/nova");

const PORT: u16 = 8791;
const BEFORE: &str = " keystonecontext ";
const BEHIND: &str = " keystonecontext ringfence ";

/// Where a test's hook listens. It is free until then, and nobody else can come upon it: it is on no address that others use.
pub(crate) fn address(nova: u16) -> SocketAddr {
    let [high, low] = nova.to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(127, 79, high, low), PORT))
}

/// What is asked, and how; the token in a file of its own.
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

/// A program that asks.
pub(crate) fn asking(program: Program, settings: String) -> Program {
    program
        .configured([settings])
        .with("PYTHONPATH", PACKAGE.to_owned())
}
