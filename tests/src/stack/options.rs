//! The options of a stack.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringfence_api::{KeystoneConfig, RateLimits, StreamLimits};
use ringfence_backends::Platform;
use ringfence_backends::kubernetes::{Cluster, ClusterSettings};
use ringfence_backends::openstack::{Cloud, Nova};
use ringfence_core::Catalogue;
use ringfence_engine::{ClockSource, EngineConfig, ObserverConfig, RetentionConfig};
use ringfence_scheduler_hook::HookConfig;

/// What to start.
#[derive(Clone, Debug)]
pub struct StackOptions {
    pub engines: usize,
    /// The bus use at which the process of the API and the first engine dies, counted from 0, and whether that use still takes effect.
    pub dies: Option<(usize, bool)>,
    pub workers: usize,
    pub clock: ClockSource,
    /// Time between two passes of an engine over hosts that are due.
    pub tick_every: Duration,
    /// Number of simulated hosts `h1` to `hN`, each with a device of its own name.
    pub hosts: usize,
    /// Number of power devices `h1-a`, `h1-b`, ... of the first host beside its other devices; 0: one device for everything.
    pub supplies: u8,
    /// Seconds that one attempt with a simulated method may take: few for devices that never do what they should.
    pub attempt_timeout_s: u32,
    /// Whether `/metrics` of the API is served without a token.
    pub are_metrics_public: bool,
    /// Whether webhooks may call this machine.
    pub may_call_loopback: bool,
    /// Who checks tokens beside the static ones.
    pub keystone: Option<KeystoneConfig>,
    pub limits: RateLimits,
    pub streams: StreamLimits,
    /// Time between two checks of a device; `None` for no checks, so that they do not use up a fault that a test has set for an attempt.
    pub checks_every: Option<Duration>,
    /// How long records are kept.
    pub retention: RetentionConfig,
    /// The clouds that hosts belong to.
    pub clouds: Vec<Arc<Cloud>>,
    /// The clusters that hosts belong to.
    pub clusters: Vec<ClusterSettings>,
    /// Platforms of the test's own.
    pub platforms: Vec<Arc<dyn Platform>>,
    /// Whether the objects of the clusters are served.
    pub has_operator: bool,
    /// The program `ceph` of the workers, where it is not the machine's.
    pub ceph: Option<PathBuf>,
    /// How the platforms' hosts are watched; the platforms come from `clouds`, `clusters` and `platforms`.
    pub observer: ObserverConfig,
    /// The drivers that methods may name.
    pub drivers: Catalogue,
    /// Schedulers' answers that the API itself gives.
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
            clusters: Vec::new(),
            platforms: Vec::new(),
            has_operator: false,
            ceph: None,
            observer: ObserverConfig::default(),
            drivers: ringfence_workers::catalogue(),
            hook: HookConfig::default(),
        }
    }
}

impl StackOptions {
    /// The platforms of one process.
    pub(super) fn platforms(&self) -> Vec<Arc<dyn Platform>> {
        let mut platforms = Nova::on(&self.clouds);
        platforms.extend(Cluster::of(self.clusters.clone()));
        platforms.extend(self.platforms.iter().cloned());
        platforms
    }
}
