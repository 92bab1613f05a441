//! How often one caller may ask, and how often one address may fail to say who it is.
//!
//! Each has a bucket: a request takes one drop, drops come back at a steady rate, an empty bucket refuses. The buckets live in
//! this process: behind N processes a caller has up to N times as much. They are bounded in number; the one that was not used for
//! longest is forgotten first, and a forgotten one begins full.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::ApiError;

/// Buckets kept at once, of callers and of addresses each.
const MAX_BUCKETS: u64 = 10_000;
/// The bits of an IPv6 address that one customer of a provider has to choose from are not told apart.
const IPV6_NETWORK: u128 = !0 << 64;

/// The limits; 0 switches one off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests of one caller per second, in the long run.
    pub requests_per_second: u32,
    /// Requests of one caller at once, after a pause. At least one.
    pub request_burst: u32,
    /// Tokens that do not work from one address, per minute and at once.
    pub failed_authentications_per_minute: u32,
}

impl RateLimits {
    /// None at all.
    pub const OFF: Self = Self {
        requests_per_second: 0,
        request_burst: 1,
        failed_authentications_per_minute: 0,
    };
}

/// The buckets, and how often they were empty.
pub(crate) struct Limits {
    callers: Option<Buckets<Arc<str>>>,
    addresses: Option<Buckets<IpAddr>>,
    refused: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Limits {
    pub fn new(limits: RateLimits, registry: &mut Registry) -> Self {
        let refused = Family::default();
        registry.register(
            "api_requests_refused",
            "Requests beyond a limit, by what has it: a caller, or an address whose tokens do not work",
            refused.clone(),
        );
        let per_second = f64::from(limits.requests_per_second);
        let failures = f64::from(limits.failed_authentications_per_minute);
        Self {
            callers: Buckets::new(per_second, f64::from(limits.request_burst.max(1))),
            addresses: Buckets::new(failures / 60.0, failures),
            refused,
        }
    }

    /// One request of this caller.
    pub fn request(&self, caller: &Arc<str>) -> Result<(), ApiError> {
        let Some(callers) = &self.callers else {
            return Ok(());
        };
        let taken = callers.of(Arc::clone(caller)).take(Instant::now());
        taken.map_err(|wait| {
            self.count("caller");
            ApiError::TooManyRequests { wait }
        })
    }

    /// Whether tokens from this address are looked at: it has not failed too often.
    pub fn may_fail(&self, address: Option<IpAddr>) -> Result<(), ApiError> {
        let Some((addresses, address)) = self.addresses.as_ref().zip(address) else {
            return Ok(());
        };
        let free = addresses.of(network(address)).look(Instant::now());
        free.map_err(|wait| {
            self.count("address");
            ApiError::TooManyFailures { wait }
        })
    }

    /// A token from this address did not work.
    pub fn failed(&self, address: Option<IpAddr>) {
        if let Some((addresses, address)) = self.addresses.as_ref().zip(address) {
            // Whether it was the last one shows at the next request.
            let _ = addresses.of(network(address)).take(Instant::now());
        }
    }

    fn count(&self, limit: &'static str) {
        self.refused.get_or_create(&[("limit", limit)]).inc();
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & IPV6_NETWORK)),
        ip @ IpAddr::V4(_) => ip,
    }
}

struct Buckets<K> {
    per_second: f64,
    size: f64,
    kept: Cache<K, Arc<Mutex<Level>>>,
}

struct Level {
    drops: f64,
    at: Instant,
}

impl<K: Hash + Eq + Send + Sync + 'static> Buckets<K> {
    fn new(per_second: f64, size: f64) -> Option<Self> {
        let is_on = per_second > 0.0 && size >= 1.0;
        is_on.then(|| Self {
            per_second,
            size,
            kept: Cache::builder()
                .max_capacity(MAX_BUCKETS)
                .eviction_policy(EvictionPolicy::lru())
                // By then it is full again, as a new one is.
                .time_to_idle(Duration::from_secs_f64(size / per_second) + Duration::from_secs(1))
                .build(),
        })
    }

    fn of(&self, key: K) -> Bucket {
        let full = || {
            Arc::new(Mutex::new(Level {
                drops: self.size,
                at: Instant::now(),
            }))
        };
        Bucket {
            level: self.kept.get_with(key, full),
            per_second: self.per_second,
            size: self.size,
        }
    }
}

struct Bucket {
    level: Arc<Mutex<Level>>,
    per_second: f64,
    size: f64,
}

impl Bucket {
    /// Takes one drop, or says how long it will be until there is one.
    fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut level = self.level.lock();
        self.fill(&mut level, now)?;
        level.drops -= 1.0;
        Ok(())
    }

    /// Whether a request would be let through, without counting it.
    fn look(&self, now: Instant) -> Result<(), Duration> {
        let mut level = self.level.lock();
        self.fill(&mut level, now)
    }

    fn fill(&self, level: &mut Level, now: Instant) -> Result<(), Duration> {
        let passed = now.saturating_duration_since(level.at).as_secs_f64();
        level.drops = (level.drops + passed * self.per_second).min(self.size);
        level.at = now;
        if level.drops >= 1.0 {
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - level.drops) / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_tokens_and_then_refilled_ones() {
        let buckets = Buckets::new(2.0, 3.0).unwrap();
        let now = Instant::now();
        let bucket: Bucket = buckets.of("a");
        for _ in 0..3 {
            bucket.take(now).unwrap();
        }
        assert_eq!(bucket.take(now).unwrap_err(), Duration::from_millis(500));
        assert!(buckets.of("b").take(now).is_ok());
        let later = now + Duration::from_millis(500);
        bucket.take(later).unwrap();
        assert!(bucket.look(later).is_err());
        let much_later = now + Duration::from_secs(60);
        for _ in 0..3 {
            bucket.take(much_later).unwrap();
        }
        assert!(bucket.take(much_later).is_err());
    }

    #[test]
    fn zero_per_second_is_no_limit() {
        assert!(Buckets::<u8>::new(0.0, 3.0).is_none());
        assert!(Buckets::<u8>::new(0.0, 0.0).is_none());
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_a_limit() {
        let network_of = |text: &str| network(text.parse().unwrap());
        assert_eq!(network_of("2001:db8::1"), network_of("2001:db8::ffff:2"));
        assert_ne!(network_of("2001:db8::1"), network_of("2001:db8:0:1::1"));
        assert_eq!(network_of("::ffff:192.0.2.1"), network_of("192.0.2.1"));
    }
}
