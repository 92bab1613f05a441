//! kdump: a host whose kernel has crashed writes what its memory holds, and says so with messages that are not signed. Its address is all
//! that tells the host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{Host, HostId, Parameters, Problems, Timestamp};

/// Where a host names its addresses among its parameters. No method has this name.
pub const KDUMP: &str = "kdump";
/// The parameter of the addresses.
const ADDRESSES: &str = "addresses";
/// The most addresses of one host.
const MAX_ADDRESSES: usize = 8;
/// Seconds without a message after which a dump is over. (`fence_kdump_send` sends one every 10 s, oVirt every 5 s.)
pub(crate) const OVER_AFTER_S: u32 = 30;

/// A moment by the clock of an engine, which a worker has counted on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTime {
    /// The moment.
    pub at: Timestamp,
    /// When that clock had last been set, if it was: a moment from before tells nothing of one from after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_set_at: Option<Timestamp>,
}

/// A crash dump of a host, as its messages tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kdump {
    /// When its first message came. A dump that pauses while the host has an operation goes on afterwards: it holds power once.
    pub since: Timestamp,
    /// When its last message came.
    pub last_at: Timestamp,
    /// Whether its end was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

impl Kdump {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            last_at: now,
            is_over: false,
        }
    }

    /// When it is over, if no message comes any more.
    #[must_use]
    pub fn over_at(&self) -> Timestamp {
        self.last_at + TimeDelta::seconds(i64::from(OVER_AFTER_S))
    }

    /// Whether messages still come.
    #[must_use]
    pub fn is_on(&self, now: Timestamp) -> bool {
        !self.is_over && self.over_at() > now
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        self.since = self.since.min(now);
        self.last_at = self.last_at.min(now);
    }
}

/// Whose message one from an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KdumpAddresses(BTreeMap<IpAddr, HostId>);

impl KdumpAddresses {
    /// By what hosts say of themselves. An address of two hosts is no host's.
    #[must_use]
    pub fn new<'a>(hosts: impl IntoIterator<Item = (HostId, &'a Parameters)>) -> Self {
        let mut known = BTreeMap::new();
        let mut shared = BTreeSet::new();
        for (id, given) in hosts {
            for address in read(given).into_iter().flatten() {
                if known.insert(address, id).is_some_and(|other| other != id) {
                    shared.insert(address);
                }
            }
        }
        known.retain(|address, _| !shared.contains(address));
        Self(known)
    }

    /// The host of an address.
    #[must_use]
    pub fn host(&self, address: IpAddr) -> Option<HostId> {
        self.0.get(&address.to_canonical()).copied()
    }

    /// The first of those that come after one, in order.
    #[must_use]
    pub fn after(&self, address: Option<IpAddr>, at_most: usize) -> Vec<IpAddr> {
        let from = address.map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.0.range((from, Bound::Unbounded)).take(at_most);
        found.map(|(address, _)| *address).collect()
    }
}

/// Whether a host names an address from which its messages come.
pub(crate) fn has_addresses(host: &Host) -> bool {
    let given = host.parameters.get(KDUMP);
    given.is_some_and(|given| read(given).is_ok_and(|all| !all.is_empty()))
}

/// What a host says under [`KDUMP`].
fn read(given: &Parameters) -> Result<Vec<IpAddr>, String> {
    given
        .get(ADDRESSES)
        .map_or_else(|| Ok(Vec::new()), |text| kdump_addresses(text))
}

/// What a host says under [`KDUMP`] whose messages come from these addresses.
#[must_use]
pub fn kdump_parameters(addresses: &[IpAddr]) -> Parameters {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    Parameters::from([(ADDRESSES.to_owned(), addresses.join(","))])
}

/// At most 8 addresses, with commas between them.
///
/// # Errors
/// What is wrong with the text.
pub fn kdump_addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let read = |word: &str| {
        let address: IpAddr = word
            .trim()
            .parse()
            .map_err(|_| format!("names {word:?}; IP addresses with commas between them are allowed"))?;
        Ok(address.to_canonical())
    };
    let all = text
        .split(',')
        .map(read)
        .collect::<Result<Vec<IpAddr>, String>>()?;
    if all.len() > MAX_ADDRESSES {
        return Err(format!(
            "has {} entries; at most {MAX_ADDRESSES} are allowed",
            all.len()
        ));
    }
    Ok(all)
}

pub(crate) fn check_addresses(given: &Parameters, problems: &mut Problems) {
    let at = format!("parameters.{KDUMP}");
    for name in given.keys().filter(|name| *name != ADDRESSES) {
        problems.add(
            format!("{at}.{name}"),
            format!("is unknown; {ADDRESSES} is allowed"),
        );
    }
    if let Err(why) = read(given) {
        problems.add(format!("{at}.{ADDRESSES}"), why);
    }
}
