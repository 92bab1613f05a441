//! A simulated Nova: its version document and its services, with a Keystone that accepts every user. For versions that the
//! run's OpenStack does not have, and for more hosts than this machine can run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::client::now;
use crate::small_server::SmallServer;

struct Shared {
    address: SocketAddr,
    hosts: Vec<String>,
    versions: Mutex<(String, String)>,
    asked_with: Mutex<String>,
    answers: AtomicU64,
    ahead_s: AtomicI64,
    /// Hosts that give no sign of life, and since when.
    silent: Mutex<BTreeMap<String, DateTime<Utc>>>,
}

/// Runs until it is dropped.
pub struct FakeNova {
    shared: Arc<Shared>,
    _server: SmallServer,
}

impl FakeNova {
    /// Starts a Nova whose hosts are all alive.
    pub fn start(hosts: &[&str]) -> Self {
        let listener = SmallServer::port();
        let shared = Arc::new(Shared {
            address: listener.local_addr().unwrap(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            versions: Mutex::new(("2.1".to_owned(), "2.93".to_owned())),
            asked_with: Mutex::default(),
            answers: AtomicU64::new(0),
            ahead_s: AtomicI64::new(0),
            silent: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&shared));
        let server = SmallServer::start(listener, move |service| {
            service
                .app_data(data.clone())
                .route("/v3/auth/tokens", web::post().to(token))
                .route("/v2.1/os-services", web::get().to(services))
                .default_service(web::to(versions));
        });
        Self {
            shared,
            _server: server,
        }
    }

    /// Changes the version document.
    pub fn with_versions(self, oldest: &str, newest: &str) -> Self {
        *self.shared.versions.lock() = (oldest.to_owned(), newest.to_owned());
        self
    }

    /// Sets Nova's clock ahead by so many seconds.
    pub fn with_clock(self, ahead_s: i64) -> Self {
        self.shared.ahead_s.store(ahead_s, Ordering::Relaxed);
        self
    }

    /// From now on the host gives no sign of life.
    pub fn fall_silent(&self, host: &str) {
        let mut silent = self.shared.silent.lock();
        silent.insert(host.to_owned(), now());
    }

    /// A `clouds.yaml` that names this Nova as the cloud `name`.
    pub fn clouds_file(&self, name: &str) -> String {
        let auth_url = self.auth_url();
        let auth = format!("auth: {{ auth_url: {auth_url}, username: u, password: p, project_name: p }}");
        format!("clouds:\n  {name}:\n    {auth}\n    region_name: RegionOne\n")
    }

    /// Nova's address, as the catalogue names it.
    pub fn url(&self) -> String {
        format!("http://{}/v2.1", self.shared.address)
    }

    /// The address of the Keystone.
    pub fn auth_url(&self) -> String {
        format!("http://{}/v3", self.shared.address)
    }

    /// The API version of the last request.
    pub fn asked_with(&self) -> String {
        self.shared.asked_with.lock().clone()
    }

    /// How often Nova has answered a list of its hosts.
    pub fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }
}

async fn token(shared: web::Data<Shared>) -> HttpResponse {
    let url = format!("http://{}/v2.1", shared.address);
    let endpoint =
        json!({ "interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": url });
    let token = json!({
        "expires_at": now() + chrono::TimeDelta::days(1),
        "catalog": [{ "type": "compute", "name": "nova", "endpoints": [endpoint] }],
    });
    HttpResponse::Created()
        .insert_header(("X-Subject-Token", "a-token"))
        .json(json!({ "token": token }))
}

async fn versions(shared: web::Data<Shared>) -> HttpResponse {
    let (oldest, newest) = shared.versions.lock().clone();
    let link = json!({ "rel": "self", "href": format!("http://{}/v2.1/", shared.address) });
    HttpResponse::Ok().json(json!({ "version": {
        "id": "v2.1", "status": "CURRENT", "min_version": oldest, "version": newest, "links": [link],
    } }))
}

async fn services(shared: web::Data<Shared>, request: HttpRequest) -> HttpResponse {
    let version = request.headers().get("OpenStack-API-Version");
    let version = version.and_then(|version| version.to_str().ok());
    *shared.asked_with.lock() = version.unwrap_or_default().to_owned();
    let silent = shared.silent.lock().clone();
    let service = |binary: &str, host: &str| -> Value {
        let at = silent.get(host).copied().unwrap_or_else(now);
        let at = at.format("%Y-%m-%dT%H:%M:%S%.6f").to_string();
        json!({
            "id": format!("{binary}-{host}"), "binary": binary, "host": host, "zone": "nova", "status": "enabled",
            "state": "up", "updated_at": at, "disabled_reason": null, "forced_down": false,
        })
    };
    let mut all = vec![service("nova-conductor", "controller")];
    all.extend(shared.hosts.iter().map(|host| service("nova-compute", host)));
    shared.answers.fetch_add(1, Ordering::Relaxed);
    let clock = now() + chrono::TimeDelta::seconds(shared.ahead_s.load(Ordering::Relaxed));
    HttpResponse::Ok()
        .insert_header(("Date", clock.format("%a, %d %b %Y %H:%M:%S GMT").to_string()))
        .json(json!({ "services": all }))
}
