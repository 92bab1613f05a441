//! Error answers of the API.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exit::Exit;

/// A refusal of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiFault {
    status: StatusCode,
    errors: Vec<Entry>,
    body: Value,
    retry_after: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Entry {
    request_id: String,
    code: String,
    title: String,
    detail: String,
}

#[derive(Deserialize)]
struct Body {
    errors: Vec<Entry>,
}

impl ApiFault {
    /// Reads the body of an error answer. An answer that is not the API's (a proxy's, for example) is shown by its status and the beginning
    /// of its text.
    #[must_use]
    pub fn read(status: StatusCode, body: &[u8]) -> Self {
        if let Ok(value) = serde_json::from_slice::<Value>(body)
            && let Ok(Body { errors }) = Body::deserialize(&value)
            && !errors.is_empty()
        {
            return Self {
                status,
                errors,
                body: value,
                retry_after: None,
            };
        }
        let text: String = String::from_utf8_lossy(body)
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        let entry = Entry {
            title: title(status),
            detail: text,
            ..Entry::default()
        };
        let body =
            json!({"errors": [{"status": status.as_u16(), "title": entry.title, "detail": entry.detail}]});
        Self {
            status,
            errors: vec![entry],
            body,
            retry_after: None,
        }
    }

    /// Adds the time after which the service wants the request again.
    #[must_use]
    pub fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// How long to wait before the request is sent again, if the service wants it again: 1 s where the service names no time.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let is_to_wait = matches!(
            self.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        is_to_wait.then(|| self.retry_after.unwrap_or(Duration::from_secs(1)))
    }

    /// The error in a few words.
    #[must_use]
    pub fn title(&self) -> &str {
        self.errors.first().map_or("", |entry| entry.title.as_str())
    }

    /// The body as the API sent it.
    #[must_use]
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Whether trying again may help: the service is not ready or not there behind its proxy.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.status.as_u16(), 502..=504)
    }

    /// Whether the service refuses because the caller has sent too many requests.
    #[must_use]
    pub fn is_of_haste(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// Whether the object has changed since it was read.
    #[must_use]
    pub fn is_changed_meanwhile(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED
    }

    /// Whether the object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Whether the device is carrying out another command.
    #[must_use]
    pub fn is_device_busy(&self) -> bool {
        self.errors
            .first()
            .is_some_and(|first| first.code == "fencing.device.busy")
    }

    /// The error without the codes that are for programs.
    #[must_use]
    pub fn detail(&self) -> String {
        self.details().collect::<Vec<_>>().join("; ")
    }

    /// Whether fields of the request are wrong: then each detail begins with one.
    #[must_use]
    pub fn is_of_fields(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    /// What is wrong, one by one.
    pub fn details(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|entry| entry.detail.as_str())
    }

    /// Whether the request is at fault, and not the caller's rights or the service.
    #[must_use]
    pub fn is_of_this_request(&self) -> bool {
        matches!(self.status.as_u16(), 400 | 404 | 409 | 412 | 413)
    }

    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> Exit {
        match self.status.as_u16() {
            400 | 413 | 422 => Exit::Usage,
            401 | 403 => Exit::NotAllowed,
            404 => Exit::NotFound,
            409 => Exit::Refused,
            _ => Exit::Failure,
        }
    }
}

fn title(status: StatusCode) -> String {
    format!(
        "HTTP {} {}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default()
    )
    .trim_end()
    .to_owned()
}

impl fmt::Display for ApiFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entry) in self.errors.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{}: {}", entry.title, entry.detail)?;
        }
        let Some(first) = self.errors.first().filter(|entry| !entry.code.is_empty()) else {
            return Ok(());
        };
        write!(
            f,
            "\n  {}, {}, request {}",
            first.code,
            self.status.as_u16(),
            first.request_id
        )
    }
}

impl std::error::Error for ApiFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_detail_code_and_request_are_shown() {
        let body = br#"{"errors":[{"request_id":"req-7","code":"fencing.host.up","status":409,"title":"Host is up","detail":"seen UP by nagios","links":[]}]}"#;
        let fault = ApiFault::read(StatusCode::CONFLICT, body);
        assert_eq!(
            fault.to_string(),
            "Host is up: seen UP by nagios\n  fencing.host.up, 409, request req-7"
        );
        assert_eq!(fault.exit_code(), Exit::Refused);
    }

    #[test]
    fn a_page_of_a_proxy_is_shown_briefly() {
        let fault = ApiFault::read(StatusCode::BAD_GATEWAY, b"<h1>nginx\x1b[31m</h1>");
        assert_eq!(fault.to_string(), "HTTP 502 Bad Gateway: <h1>nginx[31m</h1>");
        assert!(fault.is_passing());
    }

    #[test]
    fn each_status_has_its_exit_code() {
        let exit = |status: u16| ApiFault::read(StatusCode::from_u16(status).unwrap(), b"").exit_code();
        assert_eq!(
            [401, 403, 404, 409, 400, 500].map(exit),
            [
                Exit::NotAllowed,
                Exit::NotAllowed,
                Exit::NotFound,
                Exit::Refused,
                Exit::Usage,
                Exit::Failure,
            ]
        );
    }
}
