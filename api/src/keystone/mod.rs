//! Keystone v3 as the one who vouches for tokens.
//!
//! The service has a session of its own and asks Keystone about each token that it is shown. What Keystone says is kept for ten
//! seconds at most. While Keystone cannot be asked, no caller is let in, and no token is called wrong.

mod config;
mod error;
mod session;
mod token;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use reqwest::StatusCode;
use reqwest::header::HeaderValue;
use ringfence_core::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::StartError;
use crate::identity::Identity;
use crate::role::Role;

pub use config::{KeystoneConfig, Password, RoleNames, Scope};
pub use error::KeystoneError;
pub(crate) use session::Login;
use session::{Session, Told};
pub(crate) use token::User;

/// How long what Keystone said counts: a revoked token works that much longer at most.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Answers kept at once.
const MAX_KEPT: u64 = 10_000;
/// Questions to Keystone at a time; others wait for their turn within their time.
const MAX_QUESTIONS: usize = 64;

/// SHA-256: the token itself is not kept.
type TokenDigest = [u8; 32];

/// Asks Keystone about tokens.
#[derive(Clone)]
pub(crate) struct Keystone {
    inner: Arc<Inner>,
}

struct Inner {
    config: KeystoneConfig,
    session: Session,
    /// `None`: Keystone does not know the token.
    kept: Cache<TokenDigest, Option<Arc<User>>>,
    places: Semaphore,
    questions: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Keystone {
    /// Nothing is asked yet.
    pub fn new(config: KeystoneConfig, registry: &mut Registry) -> Result<Self, StartError> {
        let questions = Family::default();
        registry.register(
            "keystone_validations",
            "Tokens that Keystone was asked about, by what came of it: valid, invalid, or unavailable",
            questions.clone(),
        );
        let inner = Inner {
            session: Session::new(&config)?,
            kept: Cache::builder()
                .max_capacity(MAX_KEPT)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(KEPT_FOR)
                .build(),
            places: Semaphore::new(MAX_QUESTIONS),
            questions,
            config,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Where callers get tokens.
    pub fn url(&self) -> &str {
        self.inner.config.url()
    }

    /// Whether the token is known to work, without a request to Keystone.
    pub async fn knows(&self, token: &str) -> bool {
        matches!(self.inner.kept.get(&digest(token)).await, Some(Some(_)))
    }

    /// Whom the token belongs to; `None` if it does not work. Requests with one token that come together wait for one
    /// question.
    pub async fn validate(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<User>>, Arc<KeystoneError>> {
        let inner = &self.inner;
        let user = inner.kept.try_get_with(digest(token), inner.ask(token)).await?;
        Ok(user.filter(|user| now < user.expires_at))
    }

    /// A token for a user who logs in; `None` if Keystone refuses that.
    pub async fn log_in(&self, login: &Login<'_>) -> Result<Option<String>, Arc<KeystoneError>> {
        let timeout = self.inner.config.timeout;
        let asked = tokio::time::timeout(timeout, async {
            let _place = self.inner.places.acquire().await;
            let told = self.inner.session.ask_for_token(login).await?;
            told.map(|told| told.token()).transpose()
        });
        let token = asked.await.unwrap_or(Err(KeystoneError::Silent(timeout)))?;
        let text = |token: HeaderValue| token.to_str().map(ToOwned::to_owned);
        let text = token.map(text).transpose();
        Ok(text.map_err(|error| KeystoneError::Rubbish(error.to_string()))?)
    }

    /// What we make of the user, who asks directly or through a service.
    pub fn identity(&self, user: &User, service: Option<&User>) -> Identity {
        let config = &self.inner.config;
        let through = service.map(|service| format!(", through {}", service.name()));
        Identity {
            actor: format!("{user}{}", through.unwrap_or_default()).into(),
            role: config.scope_of(user).and_then(|()| config.role_of(user)),
            expires_at: Some(user.expires_at),
        }
    }

    /// Whether the user is a service that may ask for others.
    pub fn is_service(&self, user: &User) -> bool {
        let role = self.inner.config.role_of(user);
        user.has_one_of(&self.inner.config.roles.service) || role == Ok(Role::Admin)
    }
}

/// Whether Keystone can be asked: our own user gets in, and may validate its own token.
pub async fn check_keystone(config: &KeystoneConfig) -> Result<(), StartError> {
    let unusable = |source| StartError::KeystoneUnusable { source };
    let session = Session::new(config)?;
    let asked = tokio::time::timeout(config.timeout, async {
        let own = session.token(None).await?;
        judge(&session.ask_about(&own, own.value()).await?)
    });
    match asked.await {
        Ok(Ok(Some(_))) => Ok(()),
        Ok(Ok(None)) => Err(unusable(KeystoneError::Refused)),
        Ok(Err(error)) => Err(unusable(error)),
        Err(_) => Err(unusable(KeystoneError::Silent(config.timeout))),
    }
}

impl fmt::Debug for Keystone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystone")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl Inner {
    async fn ask(&self, token: &str) -> Result<Option<Arc<User>>, KeystoneError> {
        let timeout = self.config.timeout;
        let answer = tokio::time::timeout(timeout, self.ask_twice(token)).await;
        let answer = answer.unwrap_or(Err(KeystoneError::Silent(timeout)));
        let outcome = match &answer {
            Ok(Some(_)) => "valid",
            Ok(None) => "invalid",
            Err(_) => "unavailable",
        };
        self.questions.get_or_create(&[("outcome", outcome)]).inc();
        answer
    }

    /// Our own token may have been revoked: the second time it is a new one.
    async fn ask_twice(&self, token: &str) -> Result<Option<Arc<User>>, KeystoneError> {
        let Ok(mut subject) = HeaderValue::from_str(token) else {
            return Ok(None);
        };
        subject.set_sensitive(true);
        let _place = self.places.acquire().await;
        let mut own = self.session.token(None).await?;
        for _ in 0..2 {
            let told = self.session.ask_about(&own, &subject).await?;
            if told.status != StatusCode::UNAUTHORIZED {
                return judge(&told);
            }
            own = self.session.token(Some(&own)).await?;
        }
        Err(KeystoneError::Refused)
    }
}

/// Only Keystone's own 404 says that the token does not work: a proxy's says that Keystone is not where it should be.
fn judge(told: &Told) -> Result<Option<Arc<User>>, KeystoneError> {
    match told.status {
        StatusCode::OK => User::read(&told.body).map(|user| Some(Arc::new(user))),
        StatusCode::NOT_FOUND if wire::is_error(&told.body, 404) => Ok(None),
        StatusCode::FORBIDDEN => Err(KeystoneError::MayNotAsk),
        status => Err(KeystoneError::Status(status.as_u16())),
    }
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}
