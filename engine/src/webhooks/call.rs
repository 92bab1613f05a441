//! One call of a receiver.

use std::sync::{Arc, Once};
use std::time::Duration;

use ipnet::IpNet;
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Response, StatusCode};
use ringfence_core::Tried;
use tokio::time::Instant;
use url::Url;

use super::address::{CheckingResolver, NotAllowed};
use super::target::check_host;

/// How long a receiver may take to be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may take, all in all.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most of an answer that is read, so that the connection can be used again. Nothing of it is kept.
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// The longest text about what went wrong, in characters.
const MAX_DETAIL_CHARS: usize = 500;

/// What came of a call.
#[derive(Debug)]
pub(super) struct Called {
    pub tried: Tried,
    /// The HTTP status, if there was an answer.
    pub answer: Option<u16>,
    /// What went wrong.
    pub detail: Option<String>,
    pub took: Duration,
}

/// What is sent.
pub(super) struct Letter {
    pub url: Url,
    pub content_type: &'static str,
    pub message_id: String,
    /// Seconds since 1970.
    pub timestamp: i64,
    /// All signatures, with a space between.
    pub signature: String,
    pub body: bytes::Bytes,
}

/// Calls receivers.
pub(crate) struct Caller {
    client: Client,
    allowed: Arc<[IpNet]>,
}

impl Caller {
    pub fn new(allowed: Arc<[IpNet]>, ca_pem: Option<&str>) -> Result<Self, reqwest::Error> {
        static RING: Once = Once::new();
        RING.call_once(|| {
            // An error means that the process has chosen its provider already, which will do as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let mut builder = Client::builder()
            // Another address would not have been checked, and a proxy would resolve names itself.
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .dns_resolver(Arc::new(CheckingResolver(Arc::clone(&allowed))))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .pool_max_idle_per_host(2)
            .user_agent(concat!("ringfence/", env!("CARGO_PKG_VERSION")));
        if let Some(pem) = ca_pem {
            builder = builder.tls_certs_merge(Certificate::from_pem_bundle(pem.as_bytes())?);
        }
        Ok(Self {
            client: builder.build()?,
            allowed,
        })
    }

    pub(super) async fn call(&self, letter: Letter) -> Called {
        let begun = Instant::now();
        let (tried, answer, detail) = match check_host(&letter.url, &self.allowed) {
            Err(why) => (failed(None), None, Some(format!("the url {why}"))),
            Ok(()) => match self.send(letter).await {
                Ok(response) => judge(response).await,
                Err(error) => (failed(None), None, Some(why(&error))),
            },
        };
        Called {
            tried,
            answer,
            detail: detail.map(|text| text.chars().take(MAX_DETAIL_CHARS).collect()),
            took: begun.elapsed(),
        }
    }

    async fn send(&self, letter: Letter) -> Result<Response, reqwest::Error> {
        self.client
            .post(letter.url)
            .header("content-type", letter.content_type)
            .header("webhook-id", letter.message_id)
            .header("webhook-timestamp", letter.timestamp)
            .header("webhook-signature", letter.signature)
            .body(letter.body)
            .send()
            .await
    }
}

fn failed(retry_after_s: Option<u32>) -> Tried {
    Tried::Failed { retry_after_s }
}

async fn judge(response: Response) -> (Tried, Option<u16>, Option<String>) {
    let status = response.status();
    let answer = Some(status.as_u16());
    if status.is_success() {
        drain(response).await;
        return (Tried::Delivered, answer, None);
    }
    if status == StatusCode::GONE {
        return (Tried::Gone, answer, Some("answered 410 Gone".to_owned()));
    }
    let mut detail = format!("answered {status}");
    if status.is_redirection() {
        detail.push_str("; redirects are not followed");
    }
    let seconds = response.headers().get(RETRY_AFTER);
    let retry_after_s = seconds.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    drain(response).await;
    (failed(retry_after_s), answer, Some(detail))
}

/// A connection whose answer was read can be used again; one that goes on talking is closed.
async fn drain(mut response: Response) {
    let mut read = 0;
    while read < MAX_ANSWER_BYTES {
        match response.chunk().await {
            Ok(Some(chunk)) => read += chunk.len(),
            Ok(None) | Err(_) => return,
        }
    }
}

/// For people: not the address, which is known, but what happened.
fn why(error: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<NotAllowed>() {
            return format!("not called: {refused}");
        }
        last = cause.to_string();
        source = cause.source();
    }
    if error.is_timeout() {
        return if error.is_connect() {
            format!("could not be reached within {} s", CONNECT_TIMEOUT.as_secs())
        } else {
            format!("did not answer within {} s", CALL_TIMEOUT.as_secs())
        };
    }
    if error.is_connect() {
        format!("could not be reached: {last}")
    } else {
        format!("the call failed: {last}")
    }
}
