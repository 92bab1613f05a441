//! The driver `nfs-lease`: clients of the NFS server of a Linux kernel, on the server itself.
//!
//! A client of NFSv4 renews its lease with every call, and with one of its own after some time without any. The kernel tells how many seconds ago it did, in `info` of the client's folder (from Linux
//! 5.19; `client_info_show` in the kernel's `nfs4state.c`). It cuts both times to whole seconds before it takes one from the other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use ringfence_backends::{ALLOWED_ADDRESSES, Addresses};
use ringfence_core::{Declaration, Heartbeat, Parameter, Parameters, Resource, value_of};

use super::addresses::{by_addresses, has};
use super::{ALLOWED_PATH, HOST, are_seconds, silent_after, thread, unclear};
use crate::WorkerError;
use crate::drivers::Entry;

const DIRECTORY: &str = "directory";
const CLIENTS: &str = "/proc/fs/nfsd/clients";
const LEASE: &str = "lease_s";
/// As Linux has it.
const LEASE_S: u32 = 90;
/// Clients that are looked at, and bytes of what is told of one.
const MOST_CLIENTS: usize = 10_000;
const MOST_BYTES: u64 = 16 * 1_024;

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "nfs-lease",
        about: "clients of this worker's own NFS server that renew their leases",
        resources: &[Resource::Heartbeat],
        parameters: &[
            Parameter::optional(
                HOST,
                "the addresses from which the host reaches the NFS server, with commas between them",
            )
            .or_of_host()
            .tells_apart()
            .allowing(ALLOWED_ADDRESSES, |list| Addresses::parse(list).is_ok()),
            Parameter::optional(DIRECTORY, "the folder of the NFS server's clients")
                .says_where()
                .by_default(CLIENTS)
                .allowing(ALLOWED_PATH, |path| path.starts_with('/')),
            Parameter::optional(LEASE, "seconds without a renewal after which the server does not hear a client: nfsv4leasetime of the server")
                .by_default("90")
                .allowing("10 to 3600 is allowed", |text| are_seconds(text, 10)),
            silent_after("30", "15 to 3600 is allowed", |text| are_seconds(text, 15)),
        ],
        secrets: &[],
        others: None,
        place: None,
        lingers_s: 0,
        device: |_| None,
        can_prove: |_| false,
    },
    make: |settings| Arc::new(thread::driver(read, settings)),
};

fn read(parameters: &Parameters, hosts: &[String]) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
    let directory = Path::new(value_of(parameters, DIRECTORY).unwrap_or(CLIENTS));
    let lease_s = value_of(parameters, LEASE).and_then(|seconds| seconds.parse().ok());
    let clients = clients(directory)
        .map_err(|error| WorkerError::unclear(format!("{} cannot be read: {error}", directory.display())))?;
    let of = |host: &Addresses| heartbeat(host, &clients, lease_s.unwrap_or(LEASE_S));
    Ok(by_addresses(hosts, "the NFS server", of))
}

/// A client of the server.
struct Client {
    address: IpAddr,
    /// `None` where the kernel does not tell.
    renewed_s: Option<u32>,
}

fn clients(directory: &Path) -> io::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for entry in fs::read_dir(directory)?.take(MOST_CLIENTS) {
        let mut told = String::new();
        let opened = File::open(entry?.path().join("info"));
        match opened.and_then(|file| file.take(MOST_BYTES).read_to_string(&mut told)) {
            // It has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        let client = Client::parse(&told).ok_or_else(|| {
            io::Error::other(format!("what is told of a client is not understood: {told:?}"))
        })?;
        clients.extend(client);
    }
    Ok(clients)
}

impl Client {
    /// The inner `None` is a client that has not shown yet that it is who it says.
    fn parse(told: &str) -> Option<Option<Self>> {
        let value = |name: &str| {
            let mut lines = told.lines().filter_map(|line| line.split_once(": "));
            lines.find_map(|(known, value)| (known == name).then_some(value.trim()))
        };
        if value("status")? == "unconfirmed" {
            return Some(None);
        }
        let socket = value("address")?.trim_matches('"');
        let (ip, _port) = socket.rsplit_once(':')?;
        let renewed_s = value("seconds from last renew").map(|seconds| seconds.parse::<u32>().ok());
        Some(Some(Self {
            address: ip.trim_matches(['[', ']']).parse().ok()?,
            renewed_s: match renewed_s {
                Some(seconds) => Some(seconds?),
                None => None,
            },
        }))
    }
}

fn heartbeat(host: &Addresses, clients: &[Client], lease_s: u32) -> Heartbeat {
    let own: Vec<_> = clients
        .iter()
        .filter(|client| has(host, client.address))
        .collect();
    let newest = own
        .iter()
        .filter_map(|client| Some((client.renewed_s?, client.address)));
    match newest.min() {
        Some((renewed_s, address)) if renewed_s < lease_s => Heartbeat::Heard {
            by: format!("the NFS client at {address} has renewed its lease"),
            within_s: renewed_s.saturating_add(1),
        },
        None if !own.is_empty() => unclear("the kernel does not tell when a client has renewed its lease"),
        _ => Heartbeat::Unheard,
    }
}
