//! One request to a service of a cloud, in the session of the crate `openstack`.

use openstack::Error;
use openstack::session::Session;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::listing::{self, Page};
use super::service::Service;
use super::token;
use crate::BackendError;
use crate::openstack::{Cloud, faults};

#[derive(Clone, Copy, Debug)]
enum Method {
    Get,
    Put,
    Post,
    Delete,
}

/// A request that has not been sent.
#[must_use]
pub(in crate::openstack) struct Request<'a> {
    cloud: &'a Cloud,
    service: Service,
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'a str, &'a str)>,
    headers: Vec<(&'static str, &'a str)>,
    body: Option<Value>,
    /// A second header that shows the session's token.
    token_in: Option<&'static str>,
    /// The item of a listing behind which the answer begins.
    after: Option<String>,
    is_repeatable: bool,
}

/// The part of an answer that is kept.
#[derive(Clone, Copy)]
enum Kept<'a> {
    Nothing,
    Header(&'a str),
    Text,
}

impl Cloud {
    fn request<'a>(&'a self, service: Service, method: Method, path: &[&'a str]) -> Request<'a> {
        Request {
            cloud: self,
            service,
            method,
            path: path.to_vec(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            token_in: None,
            after: None,
            is_repeatable: matches!(method, Method::Get),
        }
    }

    pub(in crate::openstack) fn get<'a>(&'a self, service: Service, path: &[&'a str]) -> Request<'a> {
        self.request(service, Method::Get, path)
    }

    pub(in crate::openstack) fn put<'a>(&'a self, service: Service, path: &[&'a str]) -> Request<'a> {
        self.request(service, Method::Put, path)
    }

    pub(in crate::openstack) fn post<'a>(&'a self, service: Service, path: &[&'a str]) -> Request<'a> {
        self.request(service, Method::Post, path)
    }

    pub(in crate::openstack) fn delete<'a>(&'a self, service: Service, path: &[&'a str]) -> Request<'a> {
        self.request(service, Method::Delete, path)
    }
}

impl<'a> Request<'a> {
    /// Adds to the query.
    pub fn query(mut self, query: &[(&'a str, &'a str)]) -> Self {
        self.query.extend_from_slice(query);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Shows the session's token in one more header.
    pub fn token_in(mut self, header: &'static str) -> Self {
        self.token_in = Some(header);
        self
    }

    /// Sets the body.
    pub fn json(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Marks a request that changes nothing more when it is made again. After a failure that may pass it is repeated, as every GET is.
    pub fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Sends the request, and leaves the answer unread.
    pub async fn send(&self) -> Result<(), BackendError> {
        self.answer_as(Kept::Nothing, |_| Ok(())).await
    }

    /// Sends the request, and gives a header of the answer.
    pub async fn header_of_answer(&self, name: &str) -> Result<Option<String>, BackendError> {
        self.answer_as(Kept::Header(name), Ok).await
    }

    /// Sends the request, and reads the value that the answer has under a key.
    pub async fn read<T: DeserializeOwned + Send>(&self, key: &str) -> Result<T, BackendError> {
        self.answer_as(Kept::Text, |text| listing::under(&text.unwrap_or_default(), key))
            .await
    }

    /// Sends the request, and reads the whole answer.
    pub async fn read_whole<T: DeserializeOwned + Send>(&self) -> Result<T, BackendError> {
        self.answer_as(Kept::Text, |text| listing::whole(&text.unwrap_or_default()))
            .await
    }

    /// Sends the request, and reads the page of a listing that the answer has under a key.
    pub(super) async fn page<T: DeserializeOwned + Send>(&self, key: &str) -> Result<Page<T>, BackendError> {
        self.answer_as(Kept::Text, |text| listing::page(&text.unwrap_or_default(), key))
            .await
    }

    /// All items of a listing, page by page. More than `most` items are an error, so that a part is not taken for the whole.
    pub async fn all<T: DeserializeOwned + Send>(
        mut self,
        key: &str,
        most: usize,
        marker_of: impl Fn(&T) -> &str,
    ) -> Result<Vec<T>, BackendError> {
        let mut all: Vec<T> = Vec::new();
        while all.len() <= most {
            let page = self.page(key).await?;
            all.extend(page.items);
            if !page.goes_on {
                return Ok(all);
            }
            self.after = all.last().map(|last| marker_of(last).to_owned());
        }
        Err(BackendError::Unreadable {
            platform: faults::label(self.cloud.name()),
            service: self.service.name,
            why: format!("the listing has more than {most} items"),
        })
    }

    /// An answer that cannot be read is a failure that may pass.
    async fn answer_as<T: Send>(
        &self,
        kept: Kept<'_>,
        read: impl Fn(Option<String>) -> Result<T, Error> + Send + Sync,
    ) -> Result<T, BackendError> {
        let read = &read;
        let call = |session: Session| async move { read(self.answer(&session, kept).await?) };
        if self.is_repeatable {
            self.cloud.again(self.service.name, call).await
        } else {
            self.cloud.once(self.service.name, call).await
        }
    }

    async fn answer(&self, session: &Session, kept: Kept<'_>) -> Result<Option<String>, Error> {
        let (service, path) = (self.service, &self.path);
        let mut request = match self.method {
            Method::Get => session.get(service, path),
            Method::Put => session.put(service, path),
            Method::Post => session.post(service, path),
            Method::Delete => session.delete(service, path),
        };
        if let Some((name, version)) = service.version(session).await? {
            request = request.header(name, version);
        }
        if let Some(name) = self.token_in {
            request = request.header(name, token::of(session).await?);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        let after = self.after.as_deref().map(|item| ("marker", item));
        let query: Vec<_> = self.query.iter().copied().chain(after).collect();
        let answer = request.query(&query).send().await?;
        Ok(match kept {
            Kept::Nothing => None,
            Kept::Header(name) => {
                let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
                value.map(str::to_owned)
            }
            Kept::Text => Some(answer.text().await?),
        })
    }
}
