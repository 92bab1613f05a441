//! Which addresses may be called: those of the public internet, and the networks that the configuration allows.
//!
//! A client that may add a subscription must not be able to reach through Ringfence what only Ringfence can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Networks that are not of the public internet (IANA's registries of special-purpose addresses).
const SPECIAL_V4: [(Ipv4Addr, u8); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::new(255, 255, 255, 255), 32),
];

/// Checks an address of version 6, of which only 2000::/3 is assigned at all.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const SPECIAL_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // Each holds an address of version 4, which could be any.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// An address that is not called.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not an address of the public internet and in no network of webhooks.allowed_networks")]
pub(crate) struct NotAllowed(pub IpAddr);

/// Refuses an address that must not be called.
pub(crate) fn check(address: IpAddr, allowed: &[IpNet]) -> Result<(), NotAllowed> {
    let plain = address.to_canonical();
    if is_public(plain) || allowed.iter().any(|network| network.contains(&plain)) {
        Ok(())
    } else {
        Err(NotAllowed(plain))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4
            .into_iter()
            .any(|(network, bits)| u32::from(address) >> (32 - bits) == u32::from(network) >> (32 - bits)),
        IpAddr::V6(address) => {
            let is_in = |(network, bits): (Ipv6Addr, u8)| {
                u128::from(address) >> (128 - bits) == u128::from(network) >> (128 - bits)
            };
            is_in(GLOBAL_V6) && !SPECIAL_V6.into_iter().any(is_in)
        }
    }
}

/// Resolves names, and refuses those that lead to an address that must not be called: at the moment of the call, since a name can
/// lead elsewhere a moment later.
pub(super) struct CheckingResolver(pub Arc<[IpNet]>);

impl Resolve for CheckingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One that must not be called spoils them all: which one is taken is not known here.
            for address in &found {
                check(address.ip(), &allowed)?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(address: &str, allowed: &[&str]) -> bool {
        let allowed: Vec<IpNet> = allowed.iter().map(|network| network.parse().unwrap()).collect();
        check(address.parse().unwrap(), &allowed).is_ok()
    }

    #[test]
    fn only_the_public_internet_is_called() {
        for public in [
            "9.9.9.9",
            "172.32.0.1",
            "100.128.0.1",
            "2620:fe::9",
            "::ffff:9.9.9.9",
        ] {
            assert!(is_allowed(public, &[]), "{public}");
        }
        let others = [
            "127.0.0.1",
            "127.255.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.19.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ];
        for other in others {
            assert!(!is_allowed(other, &[]), "{other}");
        }
    }

    #[test]
    fn a_network_can_be_allowed_and_its_neighbours_stay_refused() {
        assert!(is_allowed("10.1.2.3", &["10.1.0.0/16"]));
        assert!(is_allowed("::ffff:10.1.2.3", &["10.1.0.0/16"]));
        assert!(!is_allowed("10.2.2.3", &["10.1.0.0/16"]));
        assert!(is_allowed("fd00::1", &["10.1.0.0/16", "fd00::/64"]));
    }
}
