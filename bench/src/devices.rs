//! Devices that answer at once, so that the rest of a fence's time is the product's.
//!
//! The simulators model a whole world and its faults, which is slower.

use std::collections::HashMap;
use std::net::TcpListener;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

/// Devices of any name, for power, storage and network, each on and unfenced until it is told otherwise.
pub struct Devices {
    url: String,
    server: ServerHandle,
}

#[derive(Default)]
struct States(Mutex<HashMap<(String, String), String>>);

#[derive(Deserialize, Serialize)]
struct State {
    state: String,
}

impl Devices {
    /// Serves on a free loopback port until it is dropped.
    pub fn start() -> Result<Self, BenchError> {
        let doing = || BenchError::system("serve the devices");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(doing())?;
        let url = format!("http://{}", listener.local_addr().map_err(doing())?);
        let states = web::Data::new(States::default());
        let server = HttpServer::new(move || {
            let path = "/devices/{device}/{resource}";
            App::new()
                .app_data(states.clone())
                .route(path, web::get().to(read))
                .route(path, web::put().to(command))
        })
        .workers(1)
        .disable_signals()
        .listen(listener)
        .map_err(doing())?
        .run();
        let handle = server.handle();
        tokio::spawn(server);
        Ok(Self { url, server: handle })
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

async fn read(states: web::Data<States>, device: web::Path<(String, String)>) -> HttpResponse {
    let device = device.into_inner();
    let untouched = if device.1 == "power" { "on" } else { "unfenced" };
    let states = states.0.lock();
    let state = states.get(&device).map_or(untouched, String::as_str).to_owned();
    HttpResponse::Ok().json(State { state })
}

async fn command(
    states: web::Data<States>,
    device: web::Path<(String, String)>,
    wanted: web::Json<State>,
) -> HttpResponse {
    let mut states = states.0.lock();
    states.insert(device.into_inner(), wanted.into_inner().state);
    HttpResponse::NoContent().finish()
}
