//! Hosts that a storage knows by their addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use ringfence_backends::{Address, Addresses};
use ringfence_core::Heartbeat;

use super::unclear;

/// What is to be said of each host by its addresses. A host is read as nothing where an address is another one's, too: a mistake, or a translation of addresses.
pub(super) fn by_addresses(
    hosts: &[String],
    storage: &str,
    heartbeat: impl Fn(&Addresses) -> Heartbeat,
) -> BTreeMap<String, Heartbeat> {
    let known: Vec<_> = hosts.iter().map(|host| Addresses::parse(host).ok()).collect();
    let of = |(at, host): (usize, &String)| {
        let mut others = known.iter().enumerate().filter(|(other, _)| *other != at);
        let heartbeat = match &known[at] {
            None => unclear(format!(
                "it is not known from which addresses {host:?} reaches {storage}; give them with the host, as the parameter host"
            )),
            Some(own) if others.any(|(_, other)| overlap(own, other.as_ref())) => {
                unclear("another host has one of its addresses")
            }
            Some(own) => heartbeat(own),
        };
        (host.clone(), heartbeat)
    };
    hosts.iter().enumerate().map(of).collect()
}

fn overlap(own: &Addresses, other: Option<&Addresses>) -> bool {
    let others = || other.into_iter().flat_map(Addresses::iter);
    own.iter()
        .any(|address| others().any(|other| other.overlaps(address)))
}

/// Whether a client at this address is the host's.
pub(super) fn has(host: &Addresses, client: IpAddr) -> bool {
    let client = Address::network(IpNet::from(client.to_canonical()));
    host.iter().any(|address| address.overlaps(client))
}
