//! Redfish (DMTF DSP0266): power over the HTTP interface of a management controller.
//!
//! The method pins one system by its path. With several systems behind one address, a client that picks one itself may report
//! on another host.

mod connection;
mod reset;
mod session;
mod system;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, Parameter, Problem, Resource, Secret, value_of,
};
use tokio::time::Instant;

use crate::act;
use crate::driver::{Clock, Driver, Report};
use crate::drivers::Entry;
use crate::drivers::tls::{CA_FILE, INSECURE};
use crate::{Secrets, WorkerError};
use ringfence_backends::TimeGiven;

use connection::Connection;
use session::Session;
use system::System;

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "redfish",
        about: "the Redfish interface of a management controller",
        resources: &[Resource::Power],
        parameters: &[
            Parameter::required("address", "the controller's URL, without a path")
                .tells_apart()
                .allowing("a URL such as https://bmc.example is allowed", |url| {
                    url.starts_with("https://") || url.starts_with("http://")
                }),
            Parameter::required(
                "system",
                "the path of one system, so that a chassis with several is never mistaken",
            )
            .tells_apart()
            .allowing(
                "the path of one system such as /redfish/v1/Systems/1 is allowed",
                |path| path.starts_with('/'),
            ),
            Parameter::required("username", "the controller's user"),
            CA_FILE,
            INSECURE,
        ],
        secrets: &[Secret {
            name: "password",
            is_required: true,
        }],
        others: None,
        place: None,
        lingers_s: 30,
        // A controller takes one command at a time, whichever its system.
        device: |parameters| {
            let address = value_of(parameters, "address")?;
            Some(format!("redfish/{}", address.trim_end_matches('/')))
        },
        can_prove: |_| true,
    },
    make: |settings| Arc::new(Redfish::new(Arc::clone(&settings.clock))),
};

/// The driver `redfish`.
pub struct Redfish {
    clock: Clock,
}

impl Redfish {
    /// With a clock for observations.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }
}

/// A session is ended before the time is up: controllers have room for few.
fn end_of_work(until: Instant) -> Instant {
    let left = until.saturating_duration_since(Instant::now());
    until - (left / 10).min(Duration::from_secs(1))
}

#[async_trait]
impl Driver for Redfish {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let time = TimeGiven::of(budget);
        let work = time.ending(end_of_work(time.until));
        let connection = match Connection::new(method, secrets) {
            Ok(connection) => connection,
            Err(error) => return error.into(),
        };
        let session = match Session::open(&connection, work.until).await {
            Ok(session) => session,
            Err(error) => return act::clean(error.into(), secrets),
        };
        let system = System::new(&connection, &session);
        let report = act::act_and_observe(&system, kind, secrets, &self.clock, work).await;
        session.close(&connection, time.until).await;
        report
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let until = Instant::now() + budget;
        let work_until = end_of_work(until);
        let connection = Connection::new(method, secrets)?;
        let session = Session::open(&connection, work_until)
            .await
            .map_err(|error| act::clean_error(error, secrets))?;
        let system = System::new(&connection, &session);
        let observation = act::observe(&system, secrets, &self.clock, work_until).await;
        session.close(&connection, until).await;
        observation
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let mut problems = Vec::new();
        let value = |name: &str| request.parameters.get(name).filter(|value| !value.contains("${"));
        if let Some(Err(error)) = value("address").map(|address| connection::base(address)) {
            problems.push(Problem::new("parameters.address", error.to_string()));
        }
        if let Some(file) = value("ca_file").filter(|file| !Path::new(file).is_file()) {
            problems.push(Problem::new(
                "parameters.ca_file",
                format!("is {file:?}, which is no file on the worker"),
            ));
        }
        problems
    }
}
