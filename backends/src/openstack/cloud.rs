//! One cloud, and the session for its calls.

use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use openstack::session::Session;
use openstack::{Error, ErrorKind};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::faults;
use super::settings::CloudSettings;
use crate::BackendError;

/// How a call that is safe to repeat is repeated: twice.
const AGAIN: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(200))
    .with_max_times(2);

/// One cloud, in a session of the crate `openstack`. Clones share one token, which is replaced as soon as it is refused.
#[derive(Debug)]
pub struct Cloud {
    settings: CloudSettings,
    session: Mutex<Option<Session>>,
}

impl Cloud {
    /// Makes no call.
    #[must_use]
    pub fn new(settings: CloudSettings) -> Self {
        Self {
            settings,
            session: Mutex::new(None),
        }
    }

    /// The cloud's name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The address and the credentials.
    pub(super) fn settings(&self) -> &CloudSettings {
        &self.settings
    }

    /// How long one call may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    async fn session(&self) -> Result<Session, BackendError> {
        let mut held = self.session.lock().await;
        if let Some(session) = held.as_ref() {
            return Ok(session.clone());
        }
        let session = self.settings.session().await?;
        Ok(held.insert(session).clone())
    }

    /// A token that was refused is not used again, even before it expires.
    async fn forget_session(&self) {
        *self.session.lock().await = None;
    }

    /// Asks Keystone for a token, if there is none yet.
    ///
    /// # Errors
    /// The entry cannot be read, or Keystone is away or refuses.
    pub async fn sign_in(&self) -> Result<(), BackendError> {
        self.session().await.map(drop)
    }

    /// Makes a call once. A refused token is replaced and the call is made again, since it was not carried out.
    pub(super) async fn once<T, F>(
        &self,
        service: &'static str,
        call: impl Fn(Session) -> F + Send,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        match self.call(service, &call).await? {
            Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
                tracing::debug!(
                    cloud = self.name(),
                    service,
                    "the token is refused; a new one is asked for"
                );
                self.forget_session().await;
                self.call(service, &call).await?
            }
            // The service may have been upgraded: its versions are read anew the next time.
            Err(error) if error.kind() == ErrorKind::IncompatibleApiVersion => {
                self.forget_session().await;
                Err(error)
            }
            done => done,
        }
        .map_err(|error| faults::of(self.name(), service, &error))
    }

    async fn call<T, F>(
        &self,
        service: &'static str,
        call: &(impl Fn(Session) -> F + Send),
    ) -> Result<Result<T, Error>, BackendError>
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        let session = self.session().await?;
        let limit = self.settings.timeout;
        timeout(limit, call(session))
            .await
            .map_err(|_| BackendError::Late {
                platform: faults::label(self.name()),
                service,
                limit,
            })
    }

    /// Makes a call that is safe to repeat: after a failure that may pass, it is repeated within the time of one call.
    pub(super) async fn again<T, F>(
        &self,
        service: &'static str,
        call: impl Fn(Session) -> F + Send + Sync,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        let until = Instant::now() + self.settings.timeout;
        (|| self.once(service, &call))
            .retry(AGAIN)
            .when(BackendError::is_passing)
            .adjust(|_, pause| pause.filter(|pause| Instant::now() + *pause < until))
            .notify(|error, _| tracing::debug!(cloud = self.name(), service, %error, "asked again"))
            .await
    }
}

/// `None` where the service says that it knows no such object.
pub(super) fn unless_gone<T>(done: Result<T, BackendError>) -> Result<Option<T>, BackendError> {
    match done {
        Err(BackendError::NotFound { .. }) => Ok(None),
        done => done.map(Some),
    }
}
