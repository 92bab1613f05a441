//! A receiver of webhooks, with faults on request.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::stream;
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// How the receiver behaves.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Answers every request with success.
    Takes,
    /// Answers every request with this status.
    Answers(u16),
    /// Answers requests about this host with this status, others with success.
    AnswersForHost(u16, String),
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
    address: SocketAddr,
    shared: Arc<Shared>,
    handle: actix_web::dev::ServerHandle,
}

impl Receiver {
    pub fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(behaviour),
            received: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&shared));
        let (sender, handle) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(data.clone())
                        .default_service(web::to(receive))
                })
                .workers(1)
                .disable_signals()
                .listen(listener)
                .unwrap()
                .run();
                sender.send(server.handle()).unwrap();
                server.await.unwrap();
            });
        });
        Self {
            address,
            shared,
            handle: handle.recv().unwrap(),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The receiver's address without a path.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
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

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

async fn receive(shared: web::Data<Shared>, request: HttpRequest, body: web::Bytes) -> HttpResponse {
    let behaviour = shared.behaviour.lock().clone();
    let event: Value = serde_json::from_slice(&body).unwrap_or_default();
    let status = match &behaviour {
        Behaviour::Answers(status) => *status,
        Behaviour::AnswersForHost(status, host) if event["subject"] == host.as_str() => *status,
        Behaviour::Redirects(_) => 307,
        Behaviour::Takes | Behaviour::AnswersForHost(..) | Behaviour::Hangs | Behaviour::Talks => 200,
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
        Behaviour::Redirects(to) => answer.insert_header(("Location", to)).finish(),
        Behaviour::Takes | Behaviour::Answers(_) | Behaviour::AnswersForHost(..) => answer.finish(),
    }
}
