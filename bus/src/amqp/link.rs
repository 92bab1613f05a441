//! One connection to the broker, made again whenever it is lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::protocol::AMQPErrorKind;
use lapin::{Connection, ConnectionProperties, ErrorKind, Event};
use ringfence_core::error_chain;
use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::config::AmqpConfig;
use super::fault::{fault, is_of_the_user, look_at, unavailable};
use super::names::Names;
use crate::BusError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The client tells of a lost connection; this is only for the case that it does not.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So long after another connection was let in this one is tried. A broker that lets in and ends at once must not keep us busy.
const AFTER_ANOTHER: Duration = Duration::from_millis(50);

/// What keeps us out is told again after so long.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// A connection that stands. Later ones have greater epochs.
#[derive(Clone)]
pub(super) struct Live {
    pub connection: Arc<Connection>,
    pub epoch: u64,
}

#[derive(Clone)]
enum State {
    /// Not there, with what the last attempt or the loss showed.
    Down(Option<lapin::Error>),
    Up(Live),
}

/// A supervised connection. Clones share it.
#[derive(Clone)]
pub(super) struct Link(Arc<Inner>);

struct Inner {
    names: Names,
    config: AmqpConfig,
    role: &'static str,
    address: String,
    state: watch::Sender<State>,
    /// How often the broker has let in one of the connections that stand beside each other.
    let_in: watch::Sender<u64>,
    closed: CancellationToken,
}

impl Link {
    pub fn new(config: AmqpConfig, role: &'static str, closed: CancellationToken) -> Self {
        Self::with(config, role, closed, watch::Sender::new(0))
    }

    /// Another connection to this broker. When the broker accepts one of them, the other does not wait any longer to try.
    pub fn beside(&self, role: &'static str) -> Self {
        let Inner {
            config,
            closed,
            let_in,
            ..
        } = &*self.0;
        Self::with(config.clone(), role, closed.clone(), let_in.clone())
    }

    fn with(
        config: AmqpConfig,
        role: &'static str,
        closed: CancellationToken,
        let_in: watch::Sender<u64>,
    ) -> Self {
        let address = config.address();
        let names = config.names();
        Self(Arc::new(Inner {
            names,
            config,
            role,
            address,
            state: watch::Sender::new(State::Down(None)),
            let_in,
            closed,
        }))
    }

    pub fn names(&self) -> &Names {
        &self.0.names
    }

    pub fn address(&self) -> &str {
        &self.0.address
    }

    pub fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    /// The connection, if it can be used now.
    pub fn live(&self) -> Result<Live, BusError> {
        if self.0.closed.is_cancelled() {
            return Err(BusError::Closed);
        }
        match &*self.0.state.borrow() {
            State::Down(None) => Err(unavailable(self.address(), "no connection yet")),
            State::Down(Some(error)) => Err(BusError::Unavailable {
                address: self.0.address.clone(),
                source: Some(Box::new(error.clone())),
            }),
            State::Up(live) if !live.connection.status().connected() => {
                Err(unavailable(self.address(), "the connection was lost"))
            }
            State::Up(live) if live.connection.status().blocked() => Err(unavailable(
                self.address(),
                "the broker is short of memory or disk space and takes no messages",
            )),
            State::Up(live) => Ok(live.clone()),
        }
    }

    /// Waits for a connection newer than `epoch`; `None` once the bus is closed.
    pub async fn newer(&self, epoch: u64) -> Option<Live> {
        let mut states = self.0.state.subscribe();
        let newer = states.wait_for(|state| matches!(state, State::Up(live) if live.epoch > epoch));
        tokio::select! {
            () = self.0.closed.cancelled() => None,
            state = newer => match &*state.ok()? {
                State::Up(live) => Some(live.clone()),
                State::Down(_) => None,
            },
        }
    }

    /// Waits for a connection while the broker is known to be there, by `other`, which stands: this one follows within moments.
    pub async fn follow(&self, other: &Self, patience: Duration) {
        if self.up().is_err() && other.live().is_ok() {
            // Whether it came is told by its use.
            let _ = timeout(patience, self.newer(0)).await;
        }
    }

    /// Waits before another attempt, not beyond the bus being closed.
    pub async fn pause(&self, wait: Duration) {
        tokio::select! {
            () = self.0.closed.cancelled() => {}
            () = sleep(wait) => {}
        }
    }

    /// Connects once.
    pub async fn open(&self, epoch: u64) -> Result<(), BusError> {
        let tls = self.0.config.tls();
        let name = format!("{} ({})", self.0.config.name(), self.0.role);
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let runtime = lapin::runtime::default_runtime().map_err(|error| self.fault(error))?;
        let connecting = Connection::connect_uri_with_config(self.0.config.uri(), properties, tls, runtime);
        let connection = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| unavailable(self.address(), "it did not answer in time"))?
            .map_err(|error| {
                self.0.state.send_replace(State::Down(Some(error.clone())));
                self.fault(error)
            })?;
        self.0.state.send_replace(State::Up(Live {
            connection: Arc::new(connection),
            epoch,
        }));
        self.0.let_in.send_modify(|times| *times += 1);
        Ok(())
    }

    fn fault(&self, error: lapin::Error) -> BusError {
        let config = &self.0.config;
        let look_at = look_at(config.setting(), &error);
        let what = || {
            format!(
                "to let {} in at {}: look at {look_at}",
                config.name(),
                self.address()
            )
        };
        fault(self.address(), what, error)
    }

    /// Keeps the connection up until the bus is closed.
    pub async fn supervise(self) {
        let closed = self.0.closed.clone();
        let mut backoff = Backoff::new();
        let mut let_in = self.0.let_in.subscribe();
        let mut epoch = 1;
        let mut told = None;
        while !closed.is_cancelled() {
            if let Ok(live) = self.up() {
                tokio::select! {
                    () = closed.cancelled() => break,
                    error = self.lost(&live) => self.gone(error),
                }
                backoff.reset();
                told = None;
                let_in.mark_unchanged();
            }
            tokio::select! {
                () = closed.cancelled() => break,
                () = sleep(backoff.next()) => {}
                () = soon_after(&mut let_in) => {}
            }
            epoch += 1;
            match self.open(epoch).await {
                Ok(()) => tracing::info!(
                    broker = self.address(),
                    role = self.0.role,
                    "connected to the broker"
                ),
                Err(error) => {
                    if is_of_the_user(&error) {
                        backoff.exhaust();
                    }
                    self.tell(&error, &mut told);
                }
            }
        }
        self.shut().await;
    }

    /// Warns of what keeps the connection from being made, and repeats a warning only once in a while.
    fn tell(&self, error: &BusError, told: &mut Option<(String, Instant)>) {
        let (address, role) = (self.address(), self.0.role);
        let shown = error as &dyn std::error::Error;
        let why = error_chain(error);
        let is_known = told
            .as_ref()
            .is_some_and(|(before, at)| *before == why && at.elapsed() < TOLD_AGAIN_AFTER);
        if is_known {
            tracing::debug!(
                broker = address,
                role,
                error = shown,
                "no connection to the broker; trying again"
            );
        } else {
            tracing::warn!(
                broker = address,
                role,
                error = shown,
                "no connection to the broker; trying again"
            );
            *told = Some((why, Instant::now()));
        }
    }

    fn up(&self) -> Result<Live, ()> {
        match &*self.0.state.borrow() {
            State::Up(live) => Ok(live.clone()),
            State::Down(_) => Err(()),
        }
    }

    fn gone(&self, error: Option<lapin::Error>) {
        let shown = error.as_ref().map(|error| error as &dyn std::error::Error);
        tracing::warn!(
            broker = self.address(),
            role = self.0.role,
            error = shown,
            "the connection to the broker was lost"
        );
        self.0.state.send_replace(State::Down(error));
    }

    async fn lost(&self, live: &Live) -> Option<lapin::Error> {
        let mut events = Box::pin(live.connection.events_listener());
        let mut look = interval(LOOK_EVERY);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Event::Error(error)) if is_of_a_channel(&error) && live.connection.status().connected() => {
                        // The owner of the channel hears of it, and the other channels go on.
                        tracing::debug!(broker = self.address(), role = self.0.role, error = &error as &dyn std::error::Error, "the broker has closed a channel");
                    }
                    Some(Event::Error(error)) => return Some(error),
                    Some(Event::ConnectionBlocked(reason)) => {
                        tracing::warn!(broker = self.address(), role = self.0.role, reason, "the broker takes no messages");
                    }
                    Some(Event::ConnectionUnblocked) => {
                        tracing::info!(broker = self.address(), role = self.0.role, "the broker takes messages again");
                    }
                    Some(_) => {}
                    None => return None,
                },
                _ = look.tick() => {
                    if !live.connection.status().connected() {
                        return None;
                    }
                }
            }
        }
    }

    async fn shut(&self) {
        if let Ok(live) = self.up() {
            // Whether it was told goodbye makes no difference to the broker's queues.
            let _ = timeout(CLOSE_TIMEOUT, live.connection.close(200, "closed".into())).await;
        }
        self.0.state.send_replace(State::Down(None));
    }
}

/// What the broker closes a channel for, and no connection: what was asked on it was refused.
fn is_of_a_channel(error: &lapin::Error) -> bool {
    match error.kind() {
        ErrorKind::ProtocolError(fault) => matches!(fault.kind(), AMQPErrorKind::Soft(_)),
        _ => false,
    }
}

/// A connection beside this one has been let in.
async fn soon_after(let_in: &mut watch::Receiver<u64>) {
    // The sender is ours.
    let _ = let_in.changed().await;
    sleep(AFTER_ANOTHER).await;
}
