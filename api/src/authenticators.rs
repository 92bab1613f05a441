//! What tells whom a token belongs to: the list of static tokens, and Keystone.

use std::net::IpAddr;
use std::sync::Arc;

use ringfence_core::Timestamp;

use crate::ApiError;
use crate::identity::{Credentials, Identity};
use crate::keystone::{Keystone, User};
use crate::limits::Limits;
use crate::tokens::{TOKEN_PREFIX, Tokens};

/// No token is longer, in bytes; Keystone's have some 200.
const MAX_TOKEN_BYTES: usize = 4096;

/// All that can tell whom a token belongs to.
pub(crate) struct Authenticators {
    pub tokens: Arc<Tokens>,
    pub keystone: Option<Keystone>,
    pub limits: Limits,
}

impl Authenticators {
    /// Whom the credentials belong to. One address cannot try tokens without end; those that are known are not held up by that.
    pub async fn identify(
        &self,
        credentials: &Credentials,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Identity, ApiError> {
        let found = self.confirm(credentials, address, now).await;
        if matches!(found, Err(ApiError::Unauthorized { .. })) {
            self.limits.failed(address);
        }
        found
    }

    /// Identifies a caller who is known already: counts as no failure.
    pub async fn confirm(
        &self,
        credentials: &Credentials,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Identity, ApiError> {
        if let Some((name, role)) = self.tokens.find(&credentials.token, now) {
            return Ok(Identity {
                actor: name.into(),
                role: Ok(role),
                expires_at: None,
            });
        }
        let unknown = || self.unauthorized("the token is unknown, revoked or expired");
        let Some(keystone) = &self.keystone else {
            self.limits.may_fail(address)?;
            return Err(unknown());
        };
        let user = self.user(keystone, &credentials.token, address, now).await?;
        let user = user.ok_or_else(unknown)?;
        let Some(token) = &credentials.service_token else {
            return Ok(keystone.identity(&user, None));
        };
        let service = self.user(keystone, token, address, now).await?;
        let service = service.filter(|service| keystone.is_service(service));
        let service = service.ok_or_else(|| {
            self.unauthorized("the token in X-Service-Token is unknown, revoked, expired or no service's")
        })?;
        Ok(keystone.identity(&user, Some(&service)))
    }

    /// The user of a token, by Keystone. Keystone is asked about a new token only while the address has failed attempts left: a client with
    /// one valid token must not be able to guess others.
    async fn user(
        &self,
        keystone: &Keystone,
        token: &str,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Option<Arc<User>>, ApiError> {
        if !is_foreign(token) {
            self.limits.may_fail(address)?;
            return Ok(None);
        }
        if !keystone.knows(token).await {
            self.limits.may_fail(address)?;
        }
        Ok(keystone.validate(token, now).await?)
    }

    /// A refusal that says where tokens come from.
    pub fn unauthorized(&self, why: &'static str) -> ApiError {
        ApiError::Unauthorized {
            why,
            keystone: self.keystone.as_ref().map(|keystone| keystone.url().to_owned()),
        }
    }
}

/// A static token that is none any more is no business of Keystone's.
fn is_foreign(token: &str) -> bool {
    !token.starts_with(TOKEN_PREFIX) && token.len() <= MAX_TOKEN_BYTES
}
