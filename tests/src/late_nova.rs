//! A proxy before a Nova API that carries out one request late, after its caller has closed the connection: like one API process of
//! several behind a load balancer that hangs for a while. A test cannot stop a real process at the right moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::small_server::SmallServer;

/// What happens to the first request for an evacuation.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Time from the arrival of the request until it is carried out.
    pub carried_out_after: Duration,
    /// The span in which a list of migrations is answered with 503, counted from the arrival of the request.
    pub silent: (Duration, Duration),
}

struct Shared {
    api: String,
    lateness: Lateness,
    came_at: Mutex<Option<Instant>>,
    was_late: AtomicBool,
    client: reqwest::Client,
}

/// Runs until it is dropped.
pub struct LateNova {
    shared: web::Data<Shared>,
    server: SmallServer,
}

impl LateNova {
    /// Starts a proxy before the API at this address.
    pub fn before(api: &str, lateness: Lateness) -> Self {
        let url = url::Url::parse(api).unwrap();
        // Fails where a provider is installed already; every provider of the tests is this one.
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

    /// Whether the late request has been carried out.
    pub fn was_late(&self) -> bool {
        self.shared.was_late.load(Ordering::SeqCst)
    }

    /// The proxy's address, with the path of the API.
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
    // Carried out also where the caller has closed the connection.
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
            // Nova builds its own addresses from this header.
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
