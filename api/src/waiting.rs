//! What a process answers that waits for the lead: that it lives, and that another one is to be asked.

use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer, web};
use tokio_util::sync::CancellationToken;

use crate::application::{ApiConfig, take_address};
use crate::{ApiError, StartError, connections, request, routes};

/// Answers until `stop`. Connections are cut then, so that the address is free for the API.
///
/// # Errors
/// The address is taken, or the certificate cannot be used.
pub async fn serve_waiting(config: &ApiConfig, stop: CancellationToken) -> Result<(), StartError> {
    let (listener, address) = take_address(config)?;
    let fault = |source| StartError::Listen {
        address: address.to_string(),
        source,
    };
    let server = HttpServer::new(|| {
        App::new()
            .wrap(from_fn(request::frame))
            .configure(routes::configure_waiting)
            .default_service(web::to(async || Err::<&str, _>(ApiError::Waiting)))
    })
    .workers(1)
    .keep_alive(connections::IDLE)
    .client_request_timeout(connections::HEAD_WITHIN)
    .disable_signals();
    let server = match &config.tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls.config()?),
        None => server.listen(listener),
    };
    let server = server.map_err(fault)?.run();
    tracing::info!(%address, "answers that it waits for the lead");
    let handle = server.handle();
    let ending = async {
        stop.cancelled().await;
        handle.stop(false).await;
    };
    let (served, ()) = tokio::join!(server, ending);
    served.map_err(fault)
}
