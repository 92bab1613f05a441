//! Sends requests and reads answers.

use std::time::Duration;

use reqwest::header::{ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::{ApiFault, Place, Request, certificate};
use crate::error::CliError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest silence of a stream: the service sends a sign of life far more often.
const STREAM_SILENCE: Duration = Duration::from_secs(60);
/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
const MAX_ERROR_BYTES: usize = 1024 * 1024;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// A client of one service.
pub struct Client {
    http: reqwest::Client,
    base: Url,
    hint: String,
}

/// An answer of the service.
#[derive(Clone, Debug)]
pub struct Answer {
    /// 200 to 299.
    pub status: StatusCode,
    /// `null` if the answer had no body.
    pub body: Value,
    /// The value for `If-Match`.
    pub etag: Option<String>,
    url: String,
}

impl Answer {
    /// The body as a view.
    pub fn view<T: DeserializeOwned>(&self) -> Result<T, CliError> {
        T::deserialize(&self.body).map_err(|error| CliError::Answer {
            url: self.url.clone(),
            why: error.to_string(),
        })
    }
}

impl Client {
    /// Sends nothing.
    pub fn new(place: Place) -> Result<Self, CliError> {
        let unusable = |error: reqwest::Error| CliError::service("client", "cannot be set up", error);
        // A redirect would take the token to another host.
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("ringfence/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(STREAM_SILENCE)
            .default_headers(headers(place.token.as_deref())?);
        if is_loopback(&place.url) {
            builder = builder.no_proxy();
        }
        if let Some(path) = &place.ca_file {
            let pem = std::fs::read(path).map_err(|error| CliError::file("read", path.as_path(), error))?;
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&pem).map_err(unusable)?);
        }
        Ok(Self {
            http: builder.build().map_err(unusable)?,
            base: place.url,
            hint: place.hint,
        })
    }

    /// Sends a request and reads the whole answer; an error status is an error.
    pub async fn send(&self, request: Request<'_>) -> Result<Answer, CliError> {
        let timeout = request.timeout;
        let response = self.start(request, Some(timeout)).await?;
        let (status, url) = (response.status(), response.url().to_string());
        let etag = response
            .headers()
            .get(ETAG)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let bytes = self.read(response, MAX_ANSWER_BYTES).await?;
        let body = if bytes.is_empty() {
            Ok(Value::Null)
        } else {
            serde_json::from_slice(&bytes)
        };
        let body = body.map_err(|error| CliError::Answer {
            url: url.clone(),
            why: error.to_string(),
        })?;
        Ok(Answer {
            status,
            body,
            etag,
            url,
        })
    }

    /// Opens the stream of events, of one host if `host` is given, after the event `after` if it is given.
    pub async fn stream(&self, host: Option<&str>, after: Option<u64>) -> Result<Stream, CliError> {
        let mut request = Request::get(&["events", "stream"]).with("host", host);
        request.last_event = after;
        let response = self.start(request, None).await?;
        Ok(Stream {
            response,
            unreachable: (self.base.to_string(), self.hint.clone()),
        })
    }

    /// All pages of a collection, up to `limit` items.
    pub async fn collect(
        &self,
        noun: &str,
        query: &[(&str, Option<String>)],
        limit: usize,
    ) -> Result<Value, CliError> {
        self.collect_at(&[noun], query, limit).await
    }

    /// All pages of a collection that belongs to an object; the last part of the path is the collection's name.
    pub async fn collect_at(
        &self,
        path: &[&str],
        query: &[(&str, Option<String>)],
        limit: usize,
    ) -> Result<Value, CliError> {
        let noun = path.last().copied().unwrap_or_default();
        let mut all = Vec::new();
        let take = |page: Vec<Value>| {
            all.extend(page);
            Ok(all.len() < limit)
        };
        self.each_page(path, query, take).await?;
        all.truncate(limit);
        Ok(serde_json::json!({ noun: all, "links": [] }))
    }

    /// Reads a collection page by page, with one page in memory at most, until `take` returns false.
    pub async fn each_page(
        &self,
        path: &[&str],
        query: &[(&str, Option<String>)],
        mut take: impl FnMut(Vec<Value>) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let noun = path.last().copied().unwrap_or_default();
        let mut query: Vec<(String, String)> = query
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)))
            .collect();
        loop {
            let mut request = Request::get(path);
            request.query = query
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()))
                .collect();
            let mut answer = self.send(request).await?;
            let page = answer.body.get_mut(noun).map(Value::take);
            let Some(Value::Array(page)) = page else {
                return Err(CliError::Answer {
                    url: answer.url,
                    why: format!("it holds no {noun}"),
                });
            };
            let is_empty = page.is_empty();
            let next = next_query(&answer.body).filter(|next| *next != query && !is_empty);
            match (take(page)?, next) {
                (true, Some(next)) => query = next,
                (false, _) | (_, None) => return Ok(()),
            }
        }
    }

    async fn start(&self, request: Request<'_>, timeout: Option<Duration>) -> Result<Response, CliError> {
        let url = self.url(&request.path)?;
        let mut sending = self.http.request(request.method, url).query(&request.query);
        if let Some(body) = &request.body {
            sending = sending.json(body);
        }
        if let Some(etag) = &request.etag {
            sending = sending.header(IF_MATCH, etag);
        }
        if let Some(key) = &request.key {
            sending = sending.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(number) = request.last_event {
            sending = sending.header(LAST_EVENT_ID, number);
        }
        if let Some(timeout) = timeout {
            sending = sending.timeout(timeout);
        }
        let response = sending.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let body = self.read(response, MAX_ERROR_BYTES).await?;
        let fault = ApiFault::read(status, &body).after(retry_after);
        Err(CliError::Api(Box::new(fault)))
    }

    async fn read(&self, mut response: Response, most: usize) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if bytes.len() + chunk.len() > most {
                let why = format!("it is longer than {most} bytes");
                return Err(CliError::Answer {
                    url: response.url().to_string(),
                    why,
                });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Each part becomes one segment of the path, with any characters escaped.
    fn url(&self, path: &[&str]) -> Result<Url, CliError> {
        let mut url = self.base.clone();
        // These segments would be resolved away, and the request would go to another address.
        if let Some(bad) = path
            .iter()
            .find(|part| part.is_empty() || matches!(**part, "." | ".."))
        {
            return Err(CliError::Usage(format!("{bad:?} is neither a name nor an id")));
        }
        let bad = || CliError::Usage(format!("{} cannot be a base URL", self.base));
        url.path_segments_mut()
            .map_err(|()| bad())?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }

    fn unreachable(&self, error: reqwest::Error) -> CliError {
        let hint = certificate::hint(&error, &self.base).unwrap_or_else(|| self.hint.clone());
        CliError::Unreachable {
            url: self.base.to_string(),
            hint,
            source: Some(Box::new(error.without_url())),
        }
    }
}

/// The stream of events.
pub struct Stream {
    response: Response,
    unreachable: (String, String),
}

impl Stream {
    /// The next bytes; `None` when the service has ended the stream.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        let chunk = self.response.chunk().await;
        chunk
            .map(|chunk| chunk.map(|bytes| bytes.to_vec()))
            .map_err(|error| {
                let (url, hint) = self.unreachable.clone();
                CliError::Unreachable {
                    url,
                    hint,
                    source: Some(Box::new(error.without_url())),
                }
            })
    }
}

/// Ringfence sends the time in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

fn headers(token: Option<&str>) -> Result<HeaderMap, CliError> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(token)
            .map_err(|_| CliError::Usage("the token holds characters that no token has".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(TOKEN, value);
    }
    Ok(headers)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Only the query of the link is used, so that the token is never sent to another address.
fn next_query(body: &Value) -> Option<Vec<(String, String)>> {
    let links = body.get("links")?.as_array()?;
    let next = links
        .iter()
        .find(|link| link.get("rel").and_then(Value::as_str) == Some("next"))?;
    let (_, query) = next.get("href")?.as_str()?.split_once('?')?;
    Some(
        url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(base: &str) -> Client {
        let place = Place {
            url: Url::parse(base).unwrap(),
            token: None,
            ca_file: None,
            hint: String::new(),
        };
        crate::install_tls();
        Client::new(place).unwrap()
    }

    #[test]
    fn a_name_is_one_segment_whatever_it_holds() {
        let client = client("http://h/fencing/");
        assert_eq!(
            client.url(&["hosts", "a/b?c"]).unwrap().as_str(),
            "http://h/fencing/hosts/a%2Fb%3Fc"
        );
        assert!(client.url(&["hosts", ".."]).is_err());
        assert!(client.url(&["hosts", ""]).is_err());
    }

    #[test]
    fn the_next_page_is_asked_of_the_same_service() {
        let body =
            serde_json::json!({"links": [{"rel": "next", "href": "http://evil/hosts?marker=m&limit=2"}]});
        let query = next_query(&body).unwrap();
        assert_eq!(
            query,
            [
                ("marker".to_owned(), "m".to_owned()),
                ("limit".to_owned(), "2".to_owned())
            ]
        );
    }
}
