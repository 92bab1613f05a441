//! `GET /metrics`, and the listener of processes without an API.
//!
//! The API's `/metrics` needs a token of the role reader, since the numbers show how much of a site is down; `metrics.public` makes it
//! public. A listener of its own needs no token: it is off until it has an address, and every client that reaches the address may read.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use actix_web::dev::ServiceRequest;
use actix_web::http::{Method, StatusCode};
use actix_web::{App, HttpResponse, HttpServer, web};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use ringfence_engine::{Exposition, METRICS_CONTENT_TYPE};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{StartError, connections};

/// What is counted of requests whose path is none of ours.
const NO_PATH: &str = "(none)";

type Labels<const N: usize> = [(&'static str, String); N];

fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 2.0, 15))
}

/// The API's own numbers.
#[derive(Clone)]
pub(crate) struct RequestMetrics {
    requests: Family<Labels<3>, Counter>,
    seconds: Family<Labels<2>, Histogram, fn() -> Histogram>,
}

impl RequestMetrics {
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(buckets),
        };
        registry.register(
            "api_requests",
            "Requests, by method, path and class of the answer's status",
            metrics.requests.clone(),
        );
        registry.register(
            "api_request_duration_seconds",
            "From a request's head to its answer's; the body of a stream comes later",
            metrics.seconds.clone(),
        );
        metrics
    }

    /// A request begins.
    pub fn begin(&self, request: &ServiceRequest) -> Counted {
        Counted {
            metrics: self.clone(),
            method: method(request.method()),
            path: request.match_pattern().unwrap_or_else(|| NO_PATH.to_owned()),
            begun: Instant::now(),
        }
    }
}

/// A request under way.
pub(crate) struct Counted {
    metrics: RequestMetrics,
    method: &'static str,
    path: String,
    begun: Instant,
}

impl Counted {
    pub fn end(self, status: StatusCode) {
        let class = format!("{}xx", status.as_u16() / 100);
        let method = self.method.to_owned();
        let labels = [
            ("method", method.clone()),
            ("path", self.path.clone()),
            ("status", class),
        ];
        self.metrics.requests.get_or_create(&labels).inc();
        let labels = [("method", method), ("path", self.path)];
        let took = self.begun.elapsed().as_secs_f64();
        self.metrics.seconds.get_or_create(&labels).observe(took);
    }
}

/// A caller can send any word as a method.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// All numbers of this process.
pub(crate) async fn answer(exposition: &Exposition) -> HttpResponse {
    match exposition.text().await {
        Ok(text) => HttpResponse::Ok().content_type(METRICS_CONTENT_TYPE).body(text),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be written");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// `/metrics` of a process that has no API.
pub struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
    exposition: Arc<Exposition>,
}

impl MetricsListener {
    /// Takes the address.
    pub fn build(listen: SocketAddr, exposition: Exposition) -> Result<Self, StartError> {
        let fault = |source| StartError::Listen {
            address: listen.to_string(),
            source,
        };
        let listener = TcpListener::bind(listen).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        Ok(Self {
            listener,
            address,
            exposition: Arc::new(exposition),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`.
    pub async fn run(self, stop: CancellationToken) -> Result<(), StartError> {
        let address = self.address;
        let fault = move |source| StartError::Listen {
            address: address.to_string(),
            source,
        };
        let exposition = web::Data::from(self.exposition);
        let server = HttpServer::new(move || {
            App::new()
                .app_data(exposition.clone())
                .service(web::resource("/metrics").route(web::get().to(alone)))
        })
        .workers(1)
        .keep_alive(connections::IDLE)
        .client_request_timeout(connections::HEAD_WITHIN)
        .shutdown_timeout(5)
        .disable_signals()
        .listen(self.listener)
        .map_err(fault)?
        .run();
        let handle = server.handle();
        let stopper = tokio::spawn(async move {
            stop.cancelled().await;
            handle.stop(true).await;
        });
        let served = server.await.map_err(fault);
        stopper.abort();
        served
    }
}

async fn alone(exposition: web::Data<Exposition>) -> HttpResponse {
    answer(&exposition).await
}
