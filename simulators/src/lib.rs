//! Simulated hosts and the devices that fence them, for tests and the demonstration.
//!
//! [`World`] is the real state: which host has power, which device has which fault, and which host may still write, whatever the devices
//! read ([`World::may_write`], the judge of a false FENCED). It is pure; time is an argument. [`Simulators`] serves it over HTTP on
//! loopback and stores it in a file, so that a restarted process continues with it.

mod error;
mod fault;
mod host;
mod port;
mod routes;
mod server;
mod store;
mod world;

pub use error::SimulatorError;
pub use fault::{Fault, FaultKind, MAX_DELAY_MS, MAX_TIMES};
pub use host::{Condition, DeviceView, HostView, SeenHost};
pub use port::{Behaviour, PortState, Verb};
pub use server::{Handle, Observer, Simulators};
pub use world::{MAX_DEVICES, MAX_HOSTS, World};
