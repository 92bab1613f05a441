//! What a stack consists of.

use std::sync::Arc;
use std::time::Duration;

use ringfence_api::{KeystoneConfig, RateLimits, StreamLimits};
use ringfence_backends::openstack::Cloud;
use ringfence_core::Catalogue;
use ringfence_engine::{ClockSource, EngineConfig, ObserverConfig, RetentionConfig};
use ringfence_scheduler_hook::HookConfig;

/// What to start.
#[derive(Clone, Debug)]
pub struct StackOptions {
    pub engines: usize,
    /// The uses of the bus after which the process of the API and the first engine dies, and whether the last one takes effect.
    pub dies: Option<(usize, bool)>,
    pub workers: usize,
    pub clock: ClockSource,
    /// Between two looks of an engine for hosts that are due.
    pub tick_every: Duration,
    /// Hosts `h1` to `hN`, simulated, each with a device of its own name.
    pub hosts: usize,
    /// Power devices `h1-a`, `h1-b`, ... of the first host, beside its other devices; 0: one device for everything.
    pub supplies: u8,
    /// Seconds that one attempt with a simulated method may take: few where a device never does what it should.
    pub attempt_timeout_s: u32,
    /// Whether `/metrics` of the API needs no token.
    pub are_metrics_public: bool,
    /// Whether webhooks may call this machine.
    pub may_call_loopback: bool,
    /// Who vouches for tokens beside the static ones.
    pub keystone: Option<KeystoneConfig>,
    pub limits: RateLimits,
    pub streams: StreamLimits,
    /// Between two checks of a device; without, none are made, so that they meet no fault that a story has laid for others.
    pub checks_every: Option<Duration>,
    /// How long things are kept.
    pub retention: RetentionConfig,
    /// The clouds that hosts belong to.
    pub clouds: Vec<Arc<Cloud>>,
    /// How they are watched; their platforms come from `clouds`.
    pub observer: ObserverConfig,
    /// The drivers that methods may name.
    pub drivers: Catalogue,
    /// What schedulers are told, by the API itself.
    pub hook: HookConfig,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            engines: 1,
            dies: None,
            workers: 1,
            clock: ClockSource::Database,
            tick_every: EngineConfig::default().tick_every,
            hosts: 1,
            supplies: 0,
            attempt_timeout_s: 15,
            are_metrics_public: false,
            may_call_loopback: true,
            keystone: None,
            limits: RateLimits::OFF,
            streams: StreamLimits {
                of_one_caller: 50,
                in_all: 100,
            },
            checks_every: None,
            retention: RetentionConfig::default(),
            clouds: Vec::new(),
            observer: ObserverConfig::default(),
            drivers: ringfence_workers::catalogue(),
            hook: HookConfig::default(),
        }
    }
}
