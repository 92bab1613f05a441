//! A front of the lab's API server, which says that it is of a newer release. All else is the API server's own.

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, PayloadConfig};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::unfold;
use ringfence_lab::ControlPlane;
use serde_json::{Value, json};

use crate::client::http_client;
use crate::small_server::SmallServer;

/// The release that it tells.
const MINOR: &str = "28";
/// The largest body that an API server takes by itself.
const MAX_BODY_BYTES: usize = 3 << 20;
/// They are of one connection, and not of what is sent through it.
const OF_A_CONNECTION: &[&str] = &["connection", "content-length", "host", "transfer-encoding"];

struct Upstream {
    url: String,
    client: reqwest::Client,
}

/// Serves plain HTTP until it is dropped: callers show who they are by a token.
pub struct NewerRelease {
    server: SmallServer,
}

impl NewerRelease {
    /// Starts before the API server of this control plane.
    pub fn before(plane: &ControlPlane) -> Self {
        let upstream = web::Data::new(Upstream {
            url: plane.url().to_owned(),
            // A watch has no end.
            client: http_client(&plane.certificate()).build().unwrap(),
        });
        let server = SmallServer::start(SmallServer::port(), move |service| {
            service
                .app_data(upstream.clone())
                .app_data(PayloadConfig::new(MAX_BODY_BYTES))
                .route("/version", web::get().to(version))
                .default_service(web::to(pass));
        });
        Self { server }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }
}

async fn version(upstream: web::Data<Upstream>, request: HttpRequest) -> HttpResponse {
    let Ok(answer) = upstream.ask(&request, Bytes::new()).await else {
        return HttpResponse::BadGateway().finish();
    };
    let Ok(mut told) = answer.json::<Value>().await else {
        return HttpResponse::BadGateway().finish();
    };
    told["minor"] = json!(MINOR);
    told["gitVersion"] = json!(format!("v1.{MINOR}.0"));
    HttpResponse::Ok().json(told)
}

/// What comes bit by bit, as a watch does, goes on bit by bit.
async fn pass(upstream: web::Data<Upstream>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let Ok(answer) = upstream.ask(&request, body).await else {
        return HttpResponse::BadGateway().finish();
    };
    let mut told = HttpResponse::build(StatusCode::from_u16(answer.status().as_u16()).unwrap());
    for (name, value) in answer.headers() {
        if !OF_A_CONNECTION.contains(&name.as_str()) {
            told.append_header((name.as_str(), value.as_bytes()));
        }
    }
    if let Some(length) = answer.content_length() {
        told.no_chunking(length);
    }
    let parts = unfold(Some(answer), async |answer| {
        let mut answer = answer?;
        match answer.chunk().await {
            Ok(None) => None,
            Ok(Some(part)) => Some((Ok(part), Some(answer))),
            Err(error) => Some((Err(error), None)),
        }
    });
    told.streaming(Box::pin(parts))
}

impl Upstream {
    async fn ask(&self, request: &HttpRequest, body: Bytes) -> Result<reqwest::Response, reqwest::Error> {
        let url = format!("{}{}", self.url, request.uri());
        let method = reqwest::Method::from_bytes(request.method().as_str().as_bytes()).unwrap();
        let mut asked = self.client.request(method, url).body(body);
        for (name, value) in request.headers() {
            if !OF_A_CONNECTION.contains(&name.as_str()) {
                asked = asked.header(name.as_str(), value.as_bytes());
            }
        }
        asked.send().await
    }
}
