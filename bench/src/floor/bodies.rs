//! The HTTP server alone: it reads a body and answers with a prepared one.

use std::net::TcpListener;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};

use crate::error::BenchError;

/// The longest body, in bytes.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// As many threads as the product has.
const THREADS: usize = 2;

/// Serves on a free loopback port until it is dropped.
pub struct Bodies {
    url: String,
    server: ServerHandle,
}

impl Bodies {
    pub fn start(answer: String) -> Result<Self, BenchError> {
        let doing = || BenchError::system("serve a fixed body");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(doing())?;
        let url = format!("http://{}", listener.local_addr().map_err(doing())?);
        let answer = web::Data::new(web::Bytes::from(answer));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(answer.clone())
                .app_data(web::PayloadConfig::new(MAX_BODY))
                .route("/", web::post().to(give))
        })
        .workers(THREADS)
        .tcp_nodelay(true)
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

impl Drop for Bodies {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

async fn give(_whole: web::Bytes, answer: web::Data<web::Bytes>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(web::Bytes::clone(&answer))
}
