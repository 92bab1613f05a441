//! How devices are asked: by the workers on the broker, or by the standalone service with its own worker.

use std::sync::Arc;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use ringfence_bus::{AmqpBus, Bus, InProcessBus, Keys};
use ringfence_core::ObservedState;
use ringfence_db::Database;
use ringfence_engine::{DeviceQuestion, Engine, EngineError, MethodCheck};

use crate::args::RemoteArgs;
use crate::client::view::Check;
use crate::client::{Client, Place, Request};
use crate::config::{Environment, Settings};
use crate::error::{CliError, error_chain};
use crate::services::{parts, standalone};

/// How a request is repeated after the service has refused it as one too many.
const AGAIN: ConstantBuilder = ConstantBuilder::new()
    .with_delay(Duration::from_secs(1))
    .with_max_times(29);

/// Asks devices for their state.
pub(super) struct Asker {
    /// Lists the devices.
    engine: Engine,
    /// The service that asks the devices, where there is no broker.
    service: Option<Client>,
}

/// A device's answer.
pub(super) enum Said {
    /// The device tells its state.
    State(String),
    /// An attempt is using the device.
    Busy,
    /// The device does not tell its state, or cannot be asked: why.
    Nothing(String),
}

impl Asker {
    /// Asks through the broker's workers, as an engine does.
    pub async fn by_workers(settings: &Settings, db: &Database, bus: AmqpBus) -> Result<Self, CliError> {
        let keys = parts::keys(settings)?;
        Ok(Self {
            engine: engine(settings, db, Arc::new(bus), keys).await?,
            service: None,
        })
    }

    /// Asks through a standalone service on this machine.
    pub async fn by_service(settings: &Settings, db: &Database) -> Result<Self, CliError> {
        let remote = RemoteArgs {
            data_dir: settings.standalone.data_dir.clone(),
            ..RemoteArgs::default()
        };
        let client = Client::new(Place::find(&remote, &Environment::default())?)?;
        let keys = standalone::fresh_keys()?;
        Ok(Self {
            engine: engine(settings, db, Arc::new(InProcessBus::new()), keys).await?,
            service: Some(client),
        })
    }

    /// The questions by which each device is asked.
    pub async fn questions(&self, host: Option<&str>) -> Result<Vec<DeviceQuestion>, EngineError> {
        self.engine.device_questions(host).await
    }

    /// Asks for one device's state.
    pub async fn put(&self, question: &DeviceQuestion) -> Said {
        match &self.service {
            Some(service) => by_api(service, question).await,
            None => heard(self.engine.put_question(question).await),
        }
    }
}

async fn engine(
    settings: &Settings,
    db: &Database,
    bus: Arc<dyn Bus>,
    keys: Keys,
) -> Result<Engine, CliError> {
    parts::engine("doctor", settings, db.clone(), bus, keys, None).await
}

fn heard(answer: Result<MethodCheck, EngineError>) -> Said {
    match answer {
        Ok(check) => told(check.observation.state.as_str(), &check.observation.detail),
        Err(EngineError::DeviceNeeded { .. }) => Said::Busy,
        Err(error) => Said::Nothing(error_chain(&error)),
    }
}

fn told(state: &str, detail: &str) -> Said {
    if state == ObservedState::Unknown.as_str() {
        return Said::Nothing(format!("its state cannot be told: {detail}"));
    }
    Said::State(state.to_owned())
}

async fn by_api(service: &Client, question: &DeviceQuestion) -> Said {
    let asked = (|| ask(service, question))
        .retry(AGAIN)
        .when(|error| matches!(error, CliError::Api(fault) if fault.is_of_haste()));
    heard_by_api(asked.await)
}

async fn ask(service: &Client, question: &DeviceQuestion) -> Result<Check, CliError> {
    let request = Request::check(&question.method, question.host.as_deref());
    service.send(request).await?.view()
}

fn heard_by_api(answer: Result<Check, CliError>) -> Said {
    match answer {
        Ok(check) => told(&check.observation.state, &check.observation.detail),
        Err(CliError::Api(fault)) if fault.is_device_busy() => Said::Busy,
        Err(CliError::Api(fault)) => Said::Nothing(fault.detail()),
        Err(error) => Said::Nothing(error_chain(&error)),
    }
}
