//! The server of the simulated world.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};
use parking_lot::{Mutex, MutexGuard};
use ringfence_core::{Resource, Timestamp};

use crate::host::{Condition, HostView, SeenHost};
use crate::{Fault, PortState, SimulatorError, World, routes, store};

/// The most connections at once; silent devices keep theirs.
const MAX_CONNECTIONS: usize = 2048;
/// The largest body of a request, in bytes.
const MAX_BODY_BYTES: usize = 4096;
/// A connection without a request is closed after this: later than a driver's HTTP client closes it (90 s).
const IDLE: Duration = Duration::from_secs(100);

/// The simulators' server.
pub struct Simulators;

impl Simulators {
    /// Listens on a loopback address (port 0 takes a free one) and serves until the handle is stopped or dropped.
    ///
    /// With a state file, the world is read from the file, or `initial` if the file does not exist; every change is in the file before it is
    /// answered. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If the address is not loopback or cannot be listened on, or the state file cannot be read, written or parsed.
    pub fn start(
        listen: SocketAddr,
        state_file: Option<PathBuf>,
        initial: World,
    ) -> Result<Handle, SimulatorError> {
        if !listen.ip().is_loopback() {
            return Err(SimulatorError::NotLoopback(listen));
        }
        let shared = Arc::new(Shared::open(state_file, initial)?);
        let cannot = |source| SimulatorError::Listen {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).map_err(cannot)?;
        let addr = listener.local_addr().map_err(cannot)?;
        let data = web::Data::from(Arc::clone(&shared));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .app_data(
                    web::JsonConfig::default()
                        .limit(MAX_BODY_BYTES)
                        .error_handler(routes::bad_body),
                )
                .configure(routes::configure)
        })
        .workers(1)
        .max_connections(MAX_CONNECTIONS)
        .keep_alive(IDLE)
        .client_request_timeout(Duration::from_secs(10))
        .disable_signals()
        .listen(listener)
        .map_err(cannot)?
        .run();
        let server_handle = server.handle();
        tokio::spawn(server);
        Ok(Handle {
            addr,
            shared,
            server: server_handle,
        })
    }
}

/// Running simulators. Dropping it stops them.
pub struct Handle {
    /// The address of the server.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    server: ServerHandle,
}

impl Handle {
    /// The base URL for the workers' driver.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What a monitor sees of every host now.
    #[must_use]
    pub fn observe(&self) -> Vec<SeenHost> {
        self.world().observe()
    }

    /// An observer for a monitor in this process; it does not keep the server running.
    #[must_use]
    pub fn observer(&self) -> Observer {
        Observer {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Whether the host can still write now: see [`World::may_write`].
    #[must_use]
    pub fn may_write(&self, host: &str) -> bool {
        self.world().may_write(host)
    }

    /// The real state now.
    #[must_use]
    pub fn world(&self) -> World {
        self.shared.now()
    }

    /// Everything about every host, as it is now.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostView> {
        self.world().hosts()
    }

    /// Sets the condition of a host.
    ///
    /// # Errors
    /// If the host is unknown, or the state file cannot be written.
    pub fn set_condition(&self, host: &str, condition: Condition) -> Result<(), SimulatorError> {
        self.shared
            .change(|world, _| world.set_condition(host, condition))
    }

    /// Sets a device by hand.
    ///
    /// # Errors
    /// If the device is unknown, the state does not fit it, or the state file cannot be written.
    pub fn set_state(
        &self,
        device: &str,
        resource: Resource,
        state: PortState,
    ) -> Result<(), SimulatorError> {
        self.shared
            .change(|world, now| world.set_state(device, resource, state, None, now))
    }

    /// Gives a device a fault, or none.
    ///
    /// # Errors
    /// If the device is unknown, or the state file cannot be written.
    pub fn set_fault(
        &self,
        device: &str,
        resource: Resource,
        fault: Option<Fault>,
    ) -> Result<(), SimulatorError> {
        self.shared
            .change(|world, _| world.set_fault(device, resource, fault))
    }

    /// Stops listening and cuts every connection.
    pub async fn stop(self) {
        self.server.stop(false).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The stop is sent at once; only its completion would have to be awaited.
        drop(self.server.stop(false));
    }
}

/// The view of a monitor.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
}

impl Observer {
    /// What a monitor sees of every host now.
    #[must_use]
    pub fn observe(&self) -> Vec<SeenHost> {
        self.shared.now().observe()
    }
}

/// The world and its file.
pub(crate) struct Shared {
    world: Mutex<World>,
    state_file: Option<PathBuf>,
}

impl Shared {
    fn open(state_file: Option<PathBuf>, initial: World) -> Result<Self, SimulatorError> {
        let known = match &state_file {
            Some(path) => store::load(path)?,
            None => None,
        };
        if let (Some(path), None) = (&state_file, &known) {
            store::save(path, &initial)?;
        }
        Ok(Self {
            world: Mutex::new(known.unwrap_or(initial)),
            state_file,
        })
    }

    /// Changes the world. A change that cannot be written to the file does not happen.
    pub(crate) fn change<T>(
        &self,
        how: impl FnOnce(&mut World, Timestamp) -> Result<T, SimulatorError>,
    ) -> Result<T, SimulatorError> {
        let mut world = self.lock();
        let mut next = world.clone();
        let now = clock();
        next.settle(now);
        let answer = how(&mut next, now)?;
        if next != *world {
            if let Some(path) = &self.state_file {
                store::save(path, &next)?;
            }
            *world = next;
        }
        Ok(answer)
    }

    /// A copy of the world as it is now.
    pub(crate) fn now(&self) -> World {
        let mut world = self.lock().clone();
        world.settle(clock());
        world
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        // A change replaces the whole world, so that a panic leaves no half of one.
        self.world.lock()
    }
}

/// The only use of a clock in the simulators.
#[expect(
    clippy::disallowed_methods,
    reason = "the simulators' own clock; the world takes time as an argument"
)]
fn clock() -> Timestamp {
    chrono::Utc::now()
}
