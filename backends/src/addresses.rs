//! The addresses by which a storage knows a host.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// The most addresses of one host: each is a command of its own.
const MAX_ADDRESSES: usize = 16;
/// The widest networks of one host, in leading bits. A wider one would cut other hosts off.
const WIDEST: (u8, u8) = (24, 64);

/// Which lists are allowed, as a sentence.
pub const ALLOWED_ADDRESSES: &str = "1 to 16 addresses or networks of the host alone are allowed, with commas between them, such as \
     192.0.2.7,fd00::7,192.0.2.64/28; a network has 24 leading bits or more, of IPv6 64 or more";

/// An address, or a network that one host has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(IpNet);

impl Address {
    /// A whole network.
    #[must_use]
    pub fn network(net: IpNet) -> Self {
        Self(net.trunc())
    }

    /// As the network that it is.
    #[must_use]
    pub fn net(self) -> IpNet {
        self.0
    }

    /// Whether it is more than one address.
    #[must_use]
    pub fn is_range(self) -> bool {
        self.0.prefix_len() < self.0.max_prefix_len()
    }

    /// Whether some address is in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.0.contains(&other.0) || other.0.contains(&self.0)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let net = text
            .parse()
            .or_else(|_| text.parse().map(|ip: IpAddr| IpNet::from(ip)));
        let net: IpNet = net.map_err(|_| format!("holds {text:?}, which is no address"))?;
        let widest = if net.addr().is_ipv4() { WIDEST.0 } else { WIDEST.1 };
        if net.prefix_len() < widest {
            return Err(format!("holds {text}, which would cut other hosts off too"));
        }
        Ok(Self::network(net))
    }
}

/// As `ceph osd blocklist` takes it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_range() {
            self.0.fmt(f)
        } else {
            self.0.addr().fmt(f)
        }
    }
}

/// All addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<Address>);

impl Addresses {
    /// From a list with commas.
    ///
    /// # Errors
    /// Words that continue a sentence whose subject is the list: it is empty, too long, or names what no host has alone.
    pub fn parse(list: &str) -> Result<Self, String> {
        let all: Vec<_> = list
            .split(',')
            .map(|text| Address::parse(text.trim()))
            .collect::<Result<_, _>>()?;
        if all.len() > MAX_ADDRESSES {
            return Err(format!("holds {} addresses", all.len()));
        }
        Ok(Self(all))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Address> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &str) -> Result<Vec<String>, String> {
        Addresses::parse(list).map(|all| all.iter().map(|address| address.to_string()).collect())
    }

    #[test]
    fn addresses_and_networks_are_read_in_the_form_that_ceph_shows() {
        assert_eq!(
            parse("192.0.2.7, 192.0.2.77/28,FD00:0::7,fd00:1::5/64,192.0.2.9/32").unwrap(),
            [
                "192.0.2.7",
                "192.0.2.64/28",
                "fd00::7",
                "fd00:1::/64",
                "192.0.2.9"
            ]
        );
    }

    #[test]
    fn a_list_that_is_empty_too_long_or_of_whole_networks_is_refused() {
        for list in [
            "",
            "a",
            "192.0.2.7,",
            "192.0.2.7:0/0",
            "host.example",
            "192.0.2.7/33",
        ] {
            assert!(parse(list).is_err(), "{list}");
        }
        let wide = parse("192.0.2.7,10.0.0.0/8").unwrap_err();
        assert_eq!(wide, "holds 10.0.0.0/8, which would cut other hosts off too");
        assert!(parse("::/0").is_err() && parse("0.0.0.0/0").is_err());
        let many = vec!["192.0.2.7"; MAX_ADDRESSES + 1].join(",");
        assert_eq!(parse(&many).unwrap_err(), "holds 17 addresses");
    }

    #[test]
    fn an_address_overlaps_with_each_network_around_it() {
        let address = |text: &str| Address::parse(text).unwrap();
        let one = address("192.0.2.70");
        assert!(one.overlaps(address("192.0.2.64/28")) && address("192.0.2.0/24").overlaps(one));
        assert!(!one.overlaps(address("192.0.2.71")) && !one.overlaps(address("fd00::/64")));
    }
}
