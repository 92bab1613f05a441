//! The application: one for the service and for tests.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::middleware::from_fn;
use actix_web::web::ServiceConfig;
use actix_web::{App, HttpRequest, HttpServer, web};
use prometheus_client::registry::Registry;
use ringfence_core::Timestamp;
use ringfence_engine::{Clock, Engine, Exposition};
use ringfence_scheduler_hook::Hook;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::authenticators::Authenticators;
use crate::keystone::{Keystone, KeystoneConfig};
use crate::limits::{Limits, RateLimits};
use crate::metrics::RequestMetrics;
use crate::routes::demo::Demo;
use crate::state::{Front, State};
use crate::streams::{StreamLimits, Streams};
use crate::tickets::Tickets;
use crate::tls::ServerTls;
use crate::tokens::Tokens;
use crate::{ApiError, StartError, connections, hook_feed, idempotency, request, routes};

/// How the API serves.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// Threads that serve requests.
    pub threads: usize,
    /// Whether `/metrics` needs no token.
    pub are_metrics_public: bool,
    /// The certificate and key; without them it speaks plain HTTP.
    pub tls: Option<ServerTls>,
    /// Who vouches for tokens beside the token file.
    pub keystone: Option<KeystoneConfig>,
    /// How often one caller may ask.
    pub limits: RateLimits,
    /// How many event streams may be open.
    pub streams: StreamLimits,
    /// Between two looks whether the token of an open stream still works.
    pub recheck_every: Duration,
}

/// An API, or a scheduler hook, that has its address and does not serve yet.
pub struct Application {
    listener: TcpListener,
    address: SocketAddr,
    config: ApiConfig,
    /// `None`: no API, only the hook.
    engine: Option<Engine>,
    hook: Option<Hook>,
    clock: Clock,
    authenticators: Authenticators,
    tickets: Arc<Tickets>,
    demo: Option<Demo>,
    exposition: Exposition,
}

impl Application {
    /// Takes the address.
    pub fn build(config: ApiConfig, engine: Engine, tokens: Tokens) -> Result<Self, StartError> {
        let clock = engine.clock().clone();
        Self::listen(config, Some(engine), clock, tokens)
    }

    /// The application of a scheduler hook without the API. The clock is the one that the hook itself goes by.
    pub fn build_hook(
        config: ApiConfig,
        hook: Hook,
        clock: Clock,
        tokens: Tokens,
    ) -> Result<Self, StartError> {
        Ok(Self::listen(config, None, clock, tokens)?.with_hook(hook))
    }

    fn listen(
        config: ApiConfig,
        engine: Option<Engine>,
        clock: Clock,
        tokens: Tokens,
    ) -> Result<Self, StartError> {
        let (listener, address) = take_address(&config)?;
        let mut exposition = Exposition::new(engine.clone());
        let registry = exposition.registry();
        let keystone = config.keystone.clone();
        let keystone = keystone.map(|keystone| Keystone::new(keystone, registry));
        let authenticators = Authenticators {
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
            hook: None,
            clock,
            authenticators,
            tickets: Arc::default(),
            demo: None,
        })
    }

    /// Answers schedulers too. While it serves, it keeps fresh what the hook knows.
    #[must_use]
    pub fn with_hook(mut self, hook: Hook) -> Self {
        hook.register_metrics(self.exposition.registry());
        self.hook = Some(hook);
        self
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets the page break the simulated hosts that are served there.
    ///
    /// # Errors
    /// What speaks to them cannot be set up.
    pub fn with_demo(mut self, url: &str) -> Result<Self, StartError> {
        self.demo = Some(Demo::new(url).map_err(|source| StartError::Demo { source })?);
        Ok(self)
    }

    /// What signs a browser in once in the place of this token.
    #[must_use]
    pub fn ticket(&self, token: &str) -> String {
        self.tickets.issue(token)
    }

    /// Reads again what can be read again while it serves.
    #[must_use]
    pub fn reload(&self) -> Reload {
        Reload {
            tokens: Arc::clone(&self.authenticators.tokens),
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
        let _kept = self.keep_hook();
        let front = web::Data::new(Front {
            requests: RequestMetrics::new(self.exposition.registry()),
            exposition: self.exposition,
            are_metrics_public: self.config.are_metrics_public,
            authenticators: self.authenticators,
            tickets: self.tickets,
            clock: self.clock,
            max_body_bytes: self.config.max_body_bytes,
        });
        let state = self.engine.map(|engine| {
            web::Data::new(State {
                front: front.clone(),
                engine,
                recheck_every: self.config.recheck_every,
                streams: Arc::new(Streams::new(self.config.streams)),
                stop: stop.clone(),
            })
        });
        let hook = self.hook.map(web::Data::new);
        let demo = self.demo.map(web::Data::new);
        let max_body_bytes = self.config.max_body_bytes;
        let server = HttpServer::new(move || {
            App::new()
                .app_data(front.clone())
                .app_data(web::PayloadConfig::new(max_body_bytes))
                .app_data(web::QueryConfig::default().error_handler(bad_query))
                .wrap(from_fn(idempotency::once))
                .wrap(from_fn(request::frame))
                .configure(|service| offer(service, state.clone(), hook.clone(), demo.clone()))
                .default_service(web::to(nothing_here))
        })
        .workers(self.config.threads)
        .keep_alive(connections::IDLE)
        .client_request_timeout(connections::HEAD_WITHIN)
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

    /// Keeps fresh what the hook knows, for as long as the value lives.
    fn keep_hook(&self) -> Option<AbortOnDropHandle<()>> {
        let (hook, engine) = (self.hook.clone()?, self.engine.clone());
        let keeping = async move {
            let kept = hook.keep(CancellationToken::new());
            match engine {
                // Where events are not announced, the engine of this process hears of them first.
                Some(engine) => drop(tokio::join!(kept, hook_feed::follow(&engine, &hook))),
                None => kept.await,
            }
        };
        Some(AbortOnDropHandle::new(tokio::spawn(keeping)))
    }
}

pub(crate) fn take_address(config: &ApiConfig) -> Result<(TcpListener, SocketAddr), StartError> {
    let fault = |source| StartError::Listen {
        address: config.listen.to_string(),
        source,
    };
    let listener = TcpListener::bind(config.listen).map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    Ok((listener, address))
}

fn offer(
    service: &mut ServiceConfig,
    state: Option<web::Data<State>>,
    hook: Option<web::Data<Hook>>,
    demo: Option<web::Data<Demo>>,
) {
    if let Some(demo) = demo {
        service.app_data(demo);
    }
    if let Some(hook) = hook {
        service.app_data(hook).configure(routes::configure_hook);
    }
    match state {
        Some(state) => service.app_data(state).configure(routes::configure),
        None => service.configure(routes::configure_alone),
    };
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
            refuse_certificate(&error);
        }
    }

    /// Reads certificate and key again if they were changed. What cannot be used is logged, as in [`Self::now`].
    pub fn certificate_if_changed(&self, now: Timestamp) {
        if let Some(Err(error)) = self.tls.as_ref().map(|tls| tls.reload_if_changed(now)) {
            refuse_certificate(&error);
        }
    }
}

fn refuse_certificate(error: &StartError) {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "the new certificate is refused; the one from before goes on"
    );
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
