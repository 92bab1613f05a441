//! The driver `sanlock`: the delta leases of a lockspace, which each host renews while it can write to the storage.
//!
//! The lease of host id N is in the sector N, counted from 1. A host that leaves the lockspace sets its timestamp to 0, and is not silent by that.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ringfence_core::{Declaration, Heartbeat, Parameter, Parameters, Resource, value_of};

use super::direct::{self, ALIGNED};
use super::lease::Lease;
use super::{ALLOWED_PATH, HOST, are_seconds, needed, silent_after, thread, unclear};
use crate::WorkerError;
use crate::drivers::Entry;

const LOCKSPACE: &str = "lockspace";
const PATH: &str = "path";
const OFFSET: &str = "offset";
/// Bytes that every area has at least.
const MIB: usize = 1024 * 1024;
/// The hosts of a lockspace, whatever the size of its area.
const MAX_HOSTS: usize = 2_000;
/// Bits of a lease's flags that say how many MiB the area has: 1, 2, 4 or 8.
const AREA_BITS: [(u32, usize); 4] = [(0x10, 1), (0x20, 2), (0x40, 4), (0x80, 8)];

pub(in crate::drivers) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "sanlock",
        about: "a lockspace of sanlock on a shared device or file",
        resources: &[Resource::Heartbeat],
        parameters: &[
            Parameter::required(LOCKSPACE, "the name of the lockspace")
                .allowing("1 to 48 characters are allowed", |name| {
                    (1..=48).contains(&name.len())
                }),
            Parameter::required(PATH, "the device or file, as the worker reaches it")
                .says_where()
                .allowing(ALLOWED_PATH, |path| path.starts_with('/')),
            Parameter::optional(OFFSET, "bytes before the lockspace, a multiple of 1048576")
                .by_default("0")
                .allowing("a multiple of 1048576 is allowed", |value| {
                    parse_offset(value).is_some()
                }),
            Parameter::optional(
                HOST,
                "the host's id in the lockspace, or the name that it has there, where that is not the name by which its platform knows it",
            )
            .or_of_host()
            .tells_apart(),
            // A host renews its lease every 20 s.
            silent_after("80", "45 to 3600 is allowed", |text| are_seconds(text, 45)),
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

fn parse_offset(value: &str) -> Option<u64> {
    let offset: u64 = value.parse().ok()?;
    offset.is_multiple_of(MIB as u64).then_some(offset)
}

fn read(parameters: &Parameters, hosts: &[String]) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
    let path = Path::new(needed(parameters, PATH)?);
    let offset = value_of(parameters, OFFSET).unwrap_or("0");
    let offset = parse_offset(offset).ok_or_else(|| WorkerError::refused("the offset cannot be used"))?;
    let leases = Leases::read(path, offset, needed(parameters, LOCKSPACE)?)?;
    let of = |host: &String| (host.clone(), leases.heartbeat(host));
    Ok(hosts.iter().map(of).collect())
}

/// The leases of a lockspace in the order of the host ids.
struct Leases(Vec<Result<Lease, &'static str>>);

impl Leases {
    fn read(path: &Path, offset: u64, lockspace: &str) -> Result<Self, WorkerError> {
        let said = |why: String| WorkerError::unclear(format!("{} {why}", path.display()));
        let sectors = |length| {
            direct::read(path, offset, length).map_err(|error| said(format!("cannot be read: {error}")))
        };
        // The first sector says how long the others are.
        let first = Lease::parse(&sectors(ALIGNED)?)
            .map_err(|why| said(format!("is no lockspace at byte {offset}: {why}")))?;
        if first.lockspace != lockspace {
            return Err(said(format!(
                "is the lockspace {:?} at byte {offset}",
                first.lockspace
            )));
        }
        let (sector, area) =
            sizes(&first).ok_or_else(|| said(format!("has sectors of {} bytes", first.sector_bytes)))?;
        let read = sectors(area)?;
        let leases = read.chunks_exact(sector).take(MAX_HOSTS).map(|sector| {
            Lease::parse(sector).and_then(|lease| {
                let is_its_own = lease.lockspace == lockspace;
                is_its_own
                    .then_some(lease)
                    .ok_or("it belongs to another lockspace")
            })
        });
        Ok(Self(leases.collect()))
    }

    fn heartbeat(&self, host: &str) -> Heartbeat {
        match host.parse() {
            Ok(id) => self.of_id(id),
            Err(_) => self.of_name(host),
        }
    }

    fn of_id(&self, id: usize) -> Heartbeat {
        let lease = id.checked_sub(1).and_then(|at| self.0.get(at));
        match lease {
            None => unclear(format!("the lockspace has no host id {id}")),
            Some(Err(why)) => unclear(format!("the sector of host id {id} is not its lease: {why}")),
            Some(Ok(lease)) => written(id, lease),
        }
    }

    /// A host that was given another id has left its name behind at the one before.
    fn of_name(&self, name: &str) -> Heartbeat {
        let leases = self.0.iter().enumerate();
        let named = leases.filter_map(|(at, lease)| Some((at + 1, lease.as_ref().ok()?)));
        let named: Vec<_> = named
            .filter(|(_, lease)| lease.name == name && lease.owner != 0)
            .collect();
        match named[..] {
            [] => unclear(format!("no host of the lockspace is named {name:?}")),
            [(id, lease)] => written(id, lease),
            [(one, _), (other, _), ..] => unclear(format!(
                "the host ids {one} and {other} have the name {name:?}; the parameter host says which one counts"
            )),
        }
    }
}

fn written(id: usize, lease: &Lease) -> Heartbeat {
    if lease.owner == 0 {
        return unclear(format!("no host has had the id {id} yet"));
    }
    if lease.owner != id as u64 {
        return unclear(format!(
            "the sector of host id {id} has the lease of host id {}",
            lease.owner
        ));
    }
    if lease.timestamp == 0 {
        return unclear(format!("the host with the id {id} has left the lockspace"));
    }
    Heartbeat::Written {
        writer: format!("host id {id} {} generation {}", lease.name, lease.generation),
        mark: lease.timestamp.to_string(),
    }
}

/// The bytes of a sector, and of all sectors that may hold a lease.
fn sizes(first: &Lease) -> Option<(usize, usize)> {
    let sector: usize = first.sector_bytes.try_into().ok()?;
    let area = AREA_BITS.iter().find(|(bit, _)| first.flags & bit != 0);
    match (sector, area) {
        (512, _) => Some((sector, MAX_HOSTS * sector)),
        (4_096, Some((_, mib))) => Some((sector, (mib * MIB).min(MAX_HOSTS * sector))),
        // A lockspace from before its size was noted.
        (4_096, None) => Some((sector, MAX_HOSTS * sector)),
        _ => None,
    }
}
