//! The installed product: the real program as processes, used over HTTP.

use ringfence_tests::{
    Client, Ground, Machine, Service, Site, post_until_taken, set_up, start_api, start_engine, start_worker,
};
use serde_json::{Value, json};

use crate::error::BenchError;

const ENGINE: &str = "engine-1";
const WORKER: &str = "worker-1";

/// A running product. Its processes end with this value.
pub struct Plant {
    pub ground: Ground,
    pub machine: Machine,
    /// The API's URL.
    pub url: String,
    /// An admin's token.
    pub token: String,
    /// A client with the admin's token.
    pub client: Client,
    /// The services, each with its name.
    pub services: Vec<(&'static str, Service)>,
    /// The database and queues, where the product does not bring its own.
    pub site: Option<Site>,
}

/// The settings that differ between two plants on one ground.
pub struct Settings {
    /// Variables of the services' environment.
    pub variables: Vec<(&'static str, String)>,
}

impl Default for Settings {
    /// No rate limit: one caller asks as often as it can, and the limit must not be what is measured.
    fn default() -> Self {
        Self {
            variables: vec![("RINGFENCE_API_REQUESTS_PER_SECOND", "0".to_owned())],
        }
    }
}

impl Settings {
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}

impl Plant {
    /// Starts `standalone`, or `api`, `engine` and `worker`.
    pub async fn start(ground: Ground, settings: Settings) -> Result<Self, BenchError> {
        let plant = match ground {
            Ground::Standalone => Self::standalone(settings).await,
            Ground::Distributed => Self::distributed(settings).await,
        }?;
        // A proof settles for the storage's sake, which is no time of the product.
        plant.client.set_default_policy(json!({})).await.ok(200);
        Ok(plant)
    }

    async fn standalone(settings: Settings) -> Result<Self, BenchError> {
        let machine = settings
            .variables
            .into_iter()
            .fold(Machine::new(), |machine, (name, value)| machine.set(name, value));
        let words = ["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"];
        let mut service = machine.start("standalone", &words);
        let url = service.until_it_listens("ready").await;
        let token = std::fs::read_to_string(machine.file("data/admin.token"))
            .map_err(BenchError::system("read the token of standalone"))?;
        Ok(Self {
            ground: Ground::Standalone,
            client: Client::new(&url, Some(token.trim())),
            token: token.trim().to_owned(),
            url,
            machine,
            services: vec![("standalone", service)],
            site: None,
        })
    }

    async fn distributed(settings: Settings) -> Result<Self, BenchError> {
        let site = Site::new(Ground::Distributed).await;
        let (machine, token) = set_up(&site).await;
        let machine = settings
            .variables
            .into_iter()
            .fold(machine, |machine, (name, value)| machine.set(name, value));
        let mut api = start_api(&machine);
        let engine = start_engine(&machine, ENGINE);
        let worker = start_worker(&machine, WORKER);
        let url = api.until_it_listens("the API listens").await;
        Ok(Self {
            ground: Ground::Distributed,
            client: Client::new(&url, Some(&token)),
            token,
            url,
            machine,
            services: vec![("api", api), ("engine", engine), ("worker", worker)],
            site: Some(site),
        })
    }

    /// Adds a method once a worker can check it.
    pub async fn add_method(&self, body: Value) {
        post_until_taken(&self.client, "/methods", body).await;
    }

    /// Adds methods on simulated devices, one device per host, each method with the name of its resource.
    pub async fn add_simulated_methods(&self, resources: &[&str]) {
        for resource in resources {
            let parameters = json!({ "device": "${host.name}" });
            let body = json!({ "name": resource, "resource": resource, "driver": "simulated", "parameters": parameters });
            self.add_method(body).await;
        }
    }

    /// The default plan: one stage in which each of these tasks has one method.
    pub async fn add_plan(&self, tasks: &[(&str, &str)]) {
        let task = |(kind, method): &(&str, &str)| json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] });
        let tasks: Vec<_> = tasks.iter().map(task).collect();
        let body = json!({ "name": "default", "stages": [{ "tasks": tasks }] });
        self.client.post("/plans", body).await.ok(201);
    }

    /// Adds a host, and reports it as UNREACHABLE if it is about to be fenced.
    pub async fn add_host(&self, name: &str, is_lost: bool) {
        self.client.post("/hosts", json!({ "name": name })).await.ok(201);
        if is_lost {
            self.client.seen(name, "UNREACHABLE").await.ok(200);
        }
    }

    /// Stops all services in order.
    pub async fn stop(self) {
        for (_, service) in self.services {
            service.stop().await;
        }
    }
}
