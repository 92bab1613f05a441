//! The application: the same for the service and for tests.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::middleware::from_fn;
use actix_web::{App, HttpRequest, HttpServer, web};
use prometheus_client::registry::Registry;
use ringfence_core::Timestamp;
use ringfence_engine::{Engine, Exposition};
use tokio_util::sync::CancellationToken;

use crate::identity::Vouchers;
use crate::keystone::{Keystone, KeystoneConfig};
use crate::limits::{Limits, RateLimits};
use crate::metrics::RequestMetrics;
use crate::state::State;
use crate::tls::ServerTls;
use crate::tokens::Tokens;
use crate::{ApiError, StartError, idempotency, request, routes};

/// How the API serves.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// Threads that serve requests.
    pub threads: usize,
    /// Whether `/metrics` is for anyone who can reach the API, and not only for those with a token.
    pub are_metrics_public: bool,
    /// The certificate and key; without them it speaks plain HTTP.
    pub tls: Option<ServerTls>,
    /// Who vouches for tokens beside the token file.
    pub keystone: Option<KeystoneConfig>,
    /// How often one caller may ask.
    pub limits: RateLimits,
    /// Between two looks whether the token of an open stream still works.
    pub recheck_every: Duration,
}

/// An API that has its address and does not serve yet.
pub struct Application {
    listener: TcpListener,
    address: SocketAddr,
    config: ApiConfig,
    engine: Engine,
    vouchers: Vouchers,
    exposition: Exposition,
}

impl Application {
    /// Takes the address.
    pub fn build(config: ApiConfig, engine: Engine, tokens: Tokens) -> Result<Self, StartError> {
        let fault = |source| StartError::Listen {
            address: config.listen.to_string(),
            source,
        };
        let listener = TcpListener::bind(config.listen).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let mut exposition = Exposition::new(Some(engine.clone()));
        let registry = exposition.registry();
        let keystone = config.keystone.clone();
        let keystone = keystone.map(|keystone| Keystone::new(keystone, registry));
        let vouchers = Vouchers {
            tokens: Arc::new(tokens),
            keystone: keystone.transpose()?,
            limits: Limits::new(config.limits, registry),
        };
        Ok(Self {
            listener,
            address,
            config,
            exposition,
            engine,
            vouchers,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads again what can be read again while it serves.
    #[must_use]
    pub fn reload(&self) -> Reload {
        Reload {
            tokens: Arc::clone(&self.vouchers.tokens),
            tls: self.config.tls.clone(),
        }
    }

    /// Where other parts of the process put their numbers, for `/metrics`.
    pub fn metrics(&mut self) -> &mut Registry {
        self.exposition.registry()
    }

    /// Serves until `stop`; requests that have begun are finished, streams are ended.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), StartError> {
        let address = self.address;
        let fault = move |source| StartError::Listen {
            address: address.to_string(),
            source,
        };
        let requests = RequestMetrics::new(self.exposition.registry());
        let state = web::Data::new(State {
            exposition: self.exposition,
            requests,
            are_metrics_public: self.config.are_metrics_public,
            engine: self.engine,
            vouchers: self.vouchers,
            recheck_every: self.config.recheck_every,
            max_body_bytes: self.config.max_body_bytes,
            stop: stop.clone(),
        });
        let max_body_bytes = self.config.max_body_bytes;
        let server = HttpServer::new(move || {
            App::new()
                .app_data(state.clone())
                .app_data(web::PayloadConfig::new(max_body_bytes))
                .app_data(web::QueryConfig::default().error_handler(bad_query))
                .wrap(from_fn(idempotency::once))
                .wrap(from_fn(request::frame))
                .configure(routes::configure)
                .default_service(web::to(nothing_here))
        })
        .workers(self.config.threads)
        .client_request_timeout(Duration::from_secs(10))
        // Two events in a row: the second one is not to wait for the listener's acknowledgement of the first.
        .tcp_nodelay(true)
        .shutdown_timeout(5)
        .disable_signals();
        let server = match &self.config.tls {
            Some(tls) => server.listen_rustls_0_23(self.listener, tls.config()?),
            None => server.listen(self.listener),
        };
        let server = server.map_err(fault)?.run();
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

/// The files that a running API reads again when it is told to.
#[derive(Clone, Debug)]
pub struct Reload {
    tokens: Arc<Tokens>,
    tls: Option<ServerTls>,
}

impl Reload {
    /// Reads them. What cannot be used is logged, and what was there before goes on.
    pub fn now(&self, now: Timestamp) {
        self.tokens.reload();
        if let Some(Err(error)) = self.tls.as_ref().map(|tls| tls.reload(now)) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the new certificate is refused; the one from before goes on"
            );
        }
    }
}

fn bad_query(error: actix_web::error::QueryPayloadError, _: &HttpRequest) -> actix_web::Error {
    ApiError::bad("query", error.to_string()).into()
}

async fn nothing_here(request: HttpRequest) -> Result<&'static str, ApiError> {
    if request.match_pattern().is_some() {
        return Err(routes::method_not_allowed(&request));
    }
    Err(ApiError::NoSuchPath(request.path().to_owned()))
}
