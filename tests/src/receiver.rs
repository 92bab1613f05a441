//! A receiver of webhooks, with faults on request.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::small_server::SmallServer;

/// How the receiver behaves.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Answers every request with success.
    Takes,
    /// Answers every request with this status.
    Answers(u16),
    /// Answers requests about this host with this status, others with success.
    AnswersForHost(u16, String),
    /// Answers every request with success and this.
    Says(Value),
    /// Redirects the caller to another address.
    Redirects(String),
    /// Reads the request and never answers.
    Hangs,
    /// Answers success with a body of a gigabyte.
    Talks,
}

/// One received request.
#[derive(Clone, Debug)]
pub struct Received {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Whether the receiver answered with success.
    pub is_taken: bool,
}

impl Received {
    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

struct Shared {
    behaviour: Mutex<Behaviour>,
    received: Mutex<Vec<Received>>,
}

/// A receiver on this machine that runs until it is dropped.
pub struct Receiver {
    shared: Arc<Shared>,
    server: SmallServer,
}

impl Receiver {
    pub fn start(behaviour: Behaviour) -> Self {
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(behaviour),
            received: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&shared));
        let server = SmallServer::start(SmallServer::port(), move |service| {
            service.app_data(data.clone()).default_service(web::to(receive));
        });
        Self { shared, server }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.server.address)
    }

    /// The receiver's address without a path.
    pub fn base(&self) -> String {
        format!("http://{}", self.server.address)
    }

    pub fn port(&self) -> u16 {
        self.server.address.port()
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock() = behaviour;
    }

    /// Every request, in the order of arrival.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().clone()
    }

    /// The events that the receiver answered with success, in the order of arrival.
    pub fn taken(&self) -> Vec<Value> {
        let received = self.received();
        let taken = received.iter().filter(|one| one.is_taken);
        taken.map(Received::event).collect()
    }
}

async fn receive(shared: web::Data<Shared>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    let behaviour = shared.behaviour.lock().clone();
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    let status = match &behaviour {
        Behaviour::Answers(status) => *status,
        Behaviour::AnswersForHost(status, host) if event["subject"] == host.as_str() => *status,
        Behaviour::Redirects(_) => 307,
        Behaviour::Takes
        | Behaviour::Says(_)
        | Behaviour::AnswersForHost(..)
        | Behaviour::Hangs
        | Behaviour::Talks => 200,
    };
    let headers = request.headers().iter().map(|(name, value)| {
        (
            name.as_str().parse::<reqwest::header::HeaderName>().unwrap(),
            reqwest::header::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        )
    });
    shared.received.lock().push(Received {
        headers: headers.collect(),
        body: body.to_vec(),
        is_taken: status == 200 && !matches!(behaviour, Behaviour::Hangs),
    });
    let mut answer = HttpResponse::build(StatusCode::from_u16(status).unwrap());
    match behaviour {
        Behaviour::Hangs => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            answer.finish()
        }
        Behaviour::Talks => answer.streaming(stream::iter(
            (0..16_384).map(|_| Ok::<_, std::io::Error>(web::Bytes::from(vec![b'x'; 65_536]))),
        )),
        Behaviour::Says(answered) => answer.json(answered),
        Behaviour::Redirects(to) => answer.insert_header(("Location", to)).finish(),
        Behaviour::Takes | Behaviour::Answers(_) | Behaviour::AnswersForHost(..) => answer.finish(),
    }
}
