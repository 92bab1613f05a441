//! Our own token, and questions to Keystone with it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::wire::TokenAnswer;
use super::{KeystoneConfig, KeystoneError};
use crate::StartError;

/// No answer about one token is longer, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// Our own token is renewed so long before its end, or at three quarters of a short life.
const RENEW_BEFORE: Duration = Duration::from_secs(300);
/// After a login that was refused: Keystone may lock a user out who fails too often.
const PAUSE_AFTER_REFUSAL: Duration = Duration::from_secs(10);

/// Speaks to Keystone as our own user.
pub(super) struct Session {
    http: reqwest::Client,
    config: KeystoneConfig,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    token: Option<Arc<OwnToken>>,
    refused_at: Option<Instant>,
}

/// A token of our own user.
pub(super) struct OwnToken {
    value: HeaderValue,
    renew_at: Instant,
}

/// A user who logs in.
pub(crate) struct Login<'a> {
    pub user: &'a str,
    pub user_domain: &'a str,
    pub password: &'a str,
    /// Name and domain; `None`: the user's default.
    pub project: Option<(&'a str, &'a str)>,
}

impl Login<'_> {
    fn body(&self) -> Value {
        let user = json!({
            "name": self.user, "domain": { "name": self.user_domain }, "password": self.password,
        });
        let mut auth = json!({ "identity": { "methods": ["password"], "password": { "user": user } } });
        if let Some((name, domain)) = self.project {
            auth["scope"] = json!({ "project": { "name": name, "domain": { "name": domain } } });
        }
        json!({ "auth": auth })
    }
}

/// What Keystone answered.
pub(super) struct Told {
    pub status: StatusCode,
    pub body: Vec<u8>,
    headers: HeaderMap,
}

impl Session {
    pub fn new(config: &KeystoneConfig) -> Result<Self, StartError> {
        Ok(Self {
            http: client(config)?,
            config: config.clone(),
            own: Mutex::new(Own::default()),
        })
    }

    /// Our own token: the one at hand, unless it ends soon or is the one that was `refused`. One login at a time.
    pub async fn token(&self, refused: Option<&Arc<OwnToken>>) -> Result<Arc<OwnToken>, KeystoneError> {
        let mut own = self.own.lock().await;
        let is_usable = |token: &&Arc<OwnToken>| {
            Instant::now() < token.renew_at && !refused.is_some_and(|refused| Arc::ptr_eq(refused, token))
        };
        if let Some(token) = own.token.as_ref().filter(is_usable) {
            return Ok(Arc::clone(token));
        }
        if own
            .refused_at
            .is_some_and(|at| at.elapsed() < PAUSE_AFTER_REFUSAL)
        {
            return Err(KeystoneError::Refused);
        }
        own.token = None;
        let done = self.log_in().await;
        own.refused_at = matches!(done, Err(KeystoneError::Refused)).then(Instant::now);
        let token = Arc::new(done?);
        own.token = Some(Arc::clone(&token));
        Ok(token)
    }

    /// What Keystone says of a caller's token.
    pub async fn ask_about(&self, own: &OwnToken, subject: &HeaderValue) -> Result<Told, KeystoneError> {
        let asked = self
            .http
            .get(self.address())
            .header("X-Auth-Token", own.value.clone())
            .header("X-Subject-Token", subject.clone());
        send(asked).await
    }

    async fn log_in(&self) -> Result<OwnToken, KeystoneError> {
        let config = &self.config;
        let password = config.password.clone();
        let password = tokio::task::spawn_blocking(move || password.look_up())
            .await
            .map_err(|error| KeystoneError::Password(error.to_string()))?
            .map_err(KeystoneError::Password)?;
        let login = Login {
            user: &config.user,
            user_domain: &config.user_domain,
            password: &password,
            project: Some((&config.project, &config.project_domain)),
        };
        let told = self.ask_for_token(&login).await?;
        told.ok_or(KeystoneError::Refused)?.own_token()
    }

    /// What Keystone answers to a login; `None` if it refuses that.
    pub async fn ask_for_token(&self, login: &Login<'_>) -> Result<Option<Told>, KeystoneError> {
        let told = send(self.http.post(self.address()).json(&login.body())).await?;
        match told.status {
            StatusCode::CREATED => Ok(Some(told)),
            StatusCode::UNAUTHORIZED => Ok(None),
            status => Err(KeystoneError::Status(status.as_u16())),
        }
    }

    /// Without the catalog, which is long and of no use here.
    fn address(&self) -> String {
        format!("{}/v3/auth/tokens?nocatalog", self.config.url())
    }
}

impl OwnToken {
    pub fn value(&self) -> &HeaderValue {
        &self.value
    }
}

impl Told {
    /// The token that a login has won.
    pub fn token(&self) -> Result<HeaderValue, KeystoneError> {
        let value = self.headers.get("x-subject-token").cloned();
        let mut value = value.ok_or_else(|| KeystoneError::Rubbish("a login without a token".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Its life is measured between Keystone's own times: our clock may differ.
    fn own_token(&self) -> Result<OwnToken, KeystoneError> {
        let rubbish = |why: &str| KeystoneError::Rubbish(why.to_owned());
        let TokenAnswer { token } =
            serde_json::from_slice(&self.body).map_err(|error| KeystoneError::Rubbish(error.to_string()))?;
        let value = self.token()?;
        let life = (token.expires_at - token.issued_at)
            .to_std()
            .map_err(|_| rubbish("a token that ends before it begins"))?;
        let ahead = RENEW_BEFORE.min(life / 4);
        Ok(OwnToken {
            value,
            renew_at: Instant::now() + (life - ahead),
        })
    }
}

async fn send(asked: RequestBuilder) -> Result<Told, KeystoneError> {
    let answer = asked.send().await.map_err(unreachable)?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    Ok(Told {
        status,
        headers,
        body: read(answer).await?,
    })
}

async fn read(mut answer: Response) -> Result<Vec<u8>, KeystoneError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            let why = format!("it is longer than {MAX_ANSWER_BYTES} bytes");
            return Err(KeystoneError::Rubbish(why));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn unreachable(error: reqwest::Error) -> KeystoneError {
    KeystoneError::Unreachable(error.without_url())
}

/// A redirect would take tokens to another host, and a proxy would see them. The caller bounds the time of the whole.
fn client(config: &KeystoneConfig) -> Result<reqwest::Client, StartError> {
    let fault = |source: reqwest::Error| StartError::Keystone { source };
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("ringfence/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if let Some(pem) = &config.ca_pem {
        let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(fault)?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(fault)
}
