//! Stands before a Nova API and carries out one request late, long after whoever made it has gone: as one of several API processes that
//! hangs for a while, with a balancer before them. No process that is stopped from outside does so at the right moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::small_server::SmallServer;

/// How the first request for an evacuation fares.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// When it is carried out, counted from when it came.
    pub carried_out_after: Duration,
    /// While nobody is told of evacuations, counted from the same moment.
    pub silent: (Duration, Duration),
}

struct Shared {
    api: String,
    lateness: Lateness,
    came_at: Mutex<Option<Instant>>,
    was_late: AtomicBool,
    client: reqwest::Client,
}

/// Lives as long as it is kept.
pub struct LateNova {
    shared: web::Data<Shared>,
    server: SmallServer,
}

impl LateNova {
    /// Before the API at this address.
    pub fn before(api: &str, lateness: Lateness) -> Self {
        let url = url::Url::parse(api).unwrap();
        // Where one is there already it is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let shared = web::Data::new(Shared {
            api: url.origin().ascii_serialization(),
            lateness,
            came_at: Mutex::default(),
            was_late: AtomicBool::new(false),
            client: reqwest::Client::new(),
        });
        let data = shared.clone();
        let server = SmallServer::start(SmallServer::port(), move |service| {
            service.app_data(data.clone()).default_service(web::to(answer));
        });
        Self { shared, server }
    }

    /// Whether it has carried out its request.
    pub fn was_late(&self) -> bool {
        self.shared.was_late.load(Ordering::SeqCst)
    }

    /// Its address, with the path of the API.
    pub fn url(&self) -> String {
        format!("http://{}/v2.1", self.server.address)
    }
}

async fn answer(shared: web::Data<Shared>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    if shared.is_silent_about(request.path()) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let forwarded = shared.forwarded(&request, body.clone());
    if !shared.is_first_evacuation(&request, &body) {
        return told(forwarded.send().await).await;
    }
    // Whoever asked may be gone by then; it is carried out all the same.
    let after = shared.lateness.carried_out_after;
    let late = actix_web::rt::spawn(async move {
        sleep(after).await;
        let answer = told(forwarded.send().await).await;
        shared
            .was_late
            .store(answer.status().is_success(), Ordering::SeqCst);
        answer
    });
    late.await.unwrap()
}

impl Shared {
    fn is_first_evacuation(&self, request: &HttpRequest, body: &[u8]) -> bool {
        let is_evacuation =
            request.method() == Method::POST && body.windows(10).any(|part| part == b"\"evacuate\"");
        let mut came_at = self.came_at.lock();
        is_evacuation && came_at.is_none() && came_at.replace(Instant::now()).is_none()
    }

    fn is_silent_about(&self, path: &str) -> bool {
        let passed = self.came_at.lock().map(|at| at.elapsed());
        let (from, until) = self.lateness.silent;
        path.contains("os-migrations") && passed.is_some_and(|passed| passed >= from && passed < until)
    }

    fn forwarded(&self, request: &HttpRequest, body: web::Bytes) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.api, request.uri());
        let method = reqwest::Method::from_bytes(request.method().as_str().as_bytes()).unwrap();
        let mut forwarded = self.client.request(method, url).body(body.to_vec());
        for (name, value) in request.headers() {
            // With its host: Nova names its own addresses by it.
            if !["content-length", "connection"].contains(&name.as_str()) {
                forwarded = forwarded.header(name.as_str(), value.as_bytes());
            }
        }
        forwarded
    }
}

async fn told(answered: Result<reqwest::Response, reqwest::Error>) -> HttpResponse {
    let Ok(answered) = answered else {
        return HttpResponse::BadGateway().finish();
    };
    let mut told = HttpResponse::build(StatusCode::from_u16(answered.status().as_u16()).unwrap());
    for (name, value) in answered.headers() {
        if !["content-length", "connection", "transfer-encoding"].contains(&name.as_str()) {
            told.append_header((name.as_str(), value.as_bytes()));
        }
    }
    told.body(answered.bytes().await.unwrap_or_default())
}
