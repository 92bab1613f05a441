//! What `ceph osd blocklist ls` shows: two arrays, of addresses and of networks, one behind the other.

use std::net::IpAddr;

use chrono::{DateTime, Duration};
use ipnet::IpNet;
use ringfence_core::{ObservedState, Timestamp};
use serde::Deserialize;

use crate::act::Reading;
use ringfence_backends::{Address, Addresses};

/// An entry that ends sooner than in so many days is no fence. Ringfence's own last for years.
const LEAST_DAYS: i64 = 365;

/// One entry as the program prints it.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    of: Of,
    until: String,
}

#[derive(Debug, Deserialize)]
enum Of {
    /// Such as `192.0.2.7:0/0` or `[fd00::7]:0/3271`: address, port and number of a client, where 0 and 0 are all clients.
    #[serde(rename = "addr")]
    Clients(String),
    /// Such as `192.0.2.64:0/28`: the last number is that of leading bits.
    #[serde(rename = "range")]
    Network(String),
}

/// An entry against all clients of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    address: Address,
    until: Timestamp,
}

impl Listed {
    fn lasts(&self, now: Timestamp) -> bool {
        self.until >= now + Duration::days(LEAST_DAYS)
    }
}

/// The entries against whole addresses. An entry against a single client is of no host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blocklist(Vec<Listed>);

impl Blocklist {
    /// All or nothing: an entry that cannot be read may be of the host.
    pub fn parse(text: &str) -> Result<Self, String> {
        let arrays = serde_json::Deserializer::from_str(text).into_iter::<Vec<Line>>();
        let arrays: Vec<_> = arrays
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the blocklist cannot be read: {error}"))?;
        if arrays.is_empty() {
            return Err("ceph printed no blocklist".to_owned());
        }
        let entries = arrays
            .iter()
            .flatten()
            .filter_map(|line| line.listed().transpose());
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// What it says of a host.
    pub fn reading(&self, host: &Addresses, now: Timestamp) -> Reading {
        let (mut there, mut absent) = (Vec::new(), Vec::new());
        for address in host.iter() {
            match self.of(address) {
                Some(listed) if listed.lasts(now) => there.push(format!("{address} until {}", listed.until)),
                Some(listed) => {
                    return Reading::Unclear(format!(
                        "{address} is on the blocklist only until {}",
                        listed.until
                    ));
                }
                None => absent.push(address),
            }
        }
        match (there.is_empty(), absent.is_empty()) {
            (false, true) => Reading::State(
                ObservedState::Fenced,
                format!("on the blocklist: {}", there.join(", ")),
            ),
            (false, false) => Reading::Unclear(format!(
                "on the blocklist: {}; not on it: {}",
                there.join(", "),
                words(&absent)
            )),
            (true, _) => self.reading_of_none(&absent),
        }
    }

    /// The entries of a host that end soon.
    pub fn short(&self, host: &Addresses, now: Timestamp) -> impl Iterator<Item = Address> {
        let of_host = host.iter().filter_map(|address| self.of(address));
        of_host
            .filter(move |listed| !listed.lasts(now))
            .map(|listed| listed.address)
    }

    fn of(&self, address: Address) -> Option<&Listed> {
        self.0.iter().find(|listed| listed.address == address)
    }

    /// A host with no entry of its own may still be in a network that was put there for another reason.
    fn reading_of_none(&self, host: &[Address]) -> Reading {
        let is_in = |listed: &&Listed| host.iter().any(|address| listed.address.overlaps(*address));
        match self.0.iter().find(is_in) {
            Some(Listed { address, .. }) => Reading::Unclear(format!(
                "the blocklist has {address}, which Ringfence did not put there; remove it with ceph osd blocklist {}rm {address}",
                if address.is_range() { "range " } else { "" }
            )),
            None => Reading::State(
                ObservedState::Unfenced,
                format!("not on the blocklist: {}", words(host)),
            ),
        }
    }
}

fn words(addresses: &[Address]) -> String {
    let words: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    words.join(", ")
}

impl Line {
    /// `None` for an entry against one client.
    fn listed(&self) -> Result<Option<Listed>, String> {
        let odd = || {
            let Self { of, until } = self;
            format!("the blocklist holds {of:?} until {until:?}, which cannot be read")
        };
        let until = DateTime::parse_from_str(&self.until, "%Y-%m-%dT%H:%M:%S%.f%z").map_err(|_| odd())?;
        let address = self.of.address().ok_or_else(odd)?;
        Ok(address.map(|address| Listed {
            address,
            until: until.to_utc(),
        }))
    }
}

impl Of {
    /// The inner `None` is one client's.
    fn address(&self) -> Option<Option<Address>> {
        let (Self::Clients(text) | Self::Network(text)) = self;
        let (socket, last) = text.rsplit_once('/')?;
        let (ip, port) = socket.rsplit_once(':')?;
        let ip: IpAddr = ip.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
        match self {
            Self::Clients(_) => {
                let (port, client): (u16, u32) = (port.parse().ok()?, last.parse().ok()?);
                Some((port == 0 && client == 0).then(|| Address::network(IpNet::from(ip))))
            }
            Self::Network(_) => {
                let net = IpNet::new(ip, last.parse().ok()?).ok()?;
                Some(Some(Address::network(net)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Ceph 16.2 prints it.
    const SHOWN: &str = concat!(
        r#"[{"addr":"192.0.2.9:0/123","until":"2026-11-25T21:16:17.816347+0000"},"#,
        r#"{"addr":"[fd00::1]:0/0","until":"2031-11-25T21:16:16.811590+0000"},"#,
        r#"{"addr":"192.0.2.7:0/0","until":"2031-11-26T01:22:14.861431+0000"},"#,
        r#"{"addr":"192.0.2.8:0/0","until":"2026-11-26T01:22:14.861431+0000"}]"#,
        "\n",
        r#"[{"range":"198.51.100.0:0/28","until":"2031-11-26T01:22:15.811216+0000"}]"#
    );

    fn reading(addresses: &str) -> Reading {
        let now = "2026-11-25T20:16:00Z".parse().unwrap();
        Blocklist::parse(SHOWN)
            .unwrap()
            .reading(&Addresses::parse(addresses).unwrap(), now)
    }

    #[track_caller]
    fn assert_unclear(addresses: &str, words: &str) {
        match reading(addresses) {
            Reading::Unclear(why) => assert!(why.contains(words), "{why}"),
            other => panic!("{addresses}: {other:?}"),
        }
    }

    #[test]
    fn a_host_is_fenced_when_all_of_its_addresses_are_listed_for_long() {
        for addresses in ["192.0.2.7", "192.0.2.7,fd00::1,198.51.100.0/28"] {
            let seen = reading(addresses);
            assert!(
                matches!(seen, Reading::State(ObservedState::Fenced, _)),
                "{seen:?}"
            );
        }
        assert_unclear("192.0.2.7,192.0.2.6", "not on it: 192.0.2.6");
        assert_unclear(
            "192.0.2.7,192.0.2.8",
            "192.0.2.8 is on the blocklist only until 2026-11-26",
        );
    }

    #[test]
    fn a_host_is_released_when_no_entry_of_any_kind_covers_it() {
        let seen = reading("192.0.2.6,fd00::2");
        assert!(
            matches!(seen, Reading::State(ObservedState::Unfenced, _)),
            "{seen:?}"
        );
        assert_unclear("198.51.100.3", "ceph osd blocklist range rm 198.51.100.0/28");
        assert_unclear("192.0.2.0/28", "did not put there");
    }

    #[test]
    fn an_entry_against_one_client_is_of_no_host() {
        let seen = reading("192.0.2.9");
        assert!(
            matches!(seen, Reading::State(ObservedState::Unfenced, _)),
            "{seen:?}"
        );
    }

    #[test]
    fn a_list_that_cannot_be_read_as_a_whole_says_nothing() {
        let odd = [
            "",
            "listed 0 entries",
            "{}",
            r#"[{"addr":"192.0.2.7:0/0","until":"soon"}]"#,
            r#"[{"addr":"?","until":"2031-11-26T01:22:14.861431+0000"}]"#,
            r#"[{"range":"198.51.100.0:0/99","until":"2031-11-26T01:22:14.861431+0000"}]"#,
            r#"[][{"until":"2031-11-26T01:22:14.861431+0000"}]"#,
            "[][",
        ];
        for text in odd {
            assert!(Blocklist::parse(text).is_err(), "{text}");
        }
        assert_eq!(Blocklist::parse("\n[][]").unwrap(), Blocklist(Vec::new()));
    }
}
