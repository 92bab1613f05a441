//! Sessions of browsers: a cookie that opens what was signed in with.
//!
//! The cookie holds 32 random bytes. The database holds their digest, and the token encrypted with a key that is made from them: the one is
//! worth nothing without the other, and no script of a page can read either. A session that is ended opens its token no more.

use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::Method;
use actix_web::{HttpRequest, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ringfence_core::Timestamp;
use ringfence_db::SessionRow;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::ApiError;
use crate::identity::{Credentials, Identity};
use crate::state::State;

/// The name of the cookie.
const COOKIE: &str = "ringfence_session";
/// So long a session lasts, if its token does not end before.
const LASTS_FOR: TimeDelta = TimeDelta::hours(12);
/// Sets the key apart from the digest.
const KEY_OF: &[u8] = b"the key of a session of ringfence";

/// The session that a request came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnSession {
    pub id: Uuid,
    pub digest: String,
}

/// What a cookie holds.
struct Secret([u8; 32]);

impl Secret {
    fn new() -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        bytes[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        Self(bytes)
    }

    fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.0))
    }

    /// `None`: never, as the key has the length that it has to have.
    fn key(&self) -> Option<LessSafeKey> {
        let key = Sha256::new().chain_update(KEY_OF).chain_update(self.0).finalize();
        Some(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?))
    }

    fn seal(&self, token: &str) -> Option<String> {
        let mut sealed = token.as_bytes().to_vec();
        let key = self.key()?;
        key.seal_in_place_append_tag(once(), Aad::empty(), &mut sealed)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    fn open(&self, sealed: &str) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let token = self.key()?.open_in_place(once(), Aad::empty(), &mut bytes).ok()?;
        String::from_utf8(token.to_vec()).ok()
    }
}

/// A key seals one token.
fn once() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// A session of a caller, and what its browser keeps of it.
pub(crate) fn begin(
    request: &HttpRequest,
    token: &str,
    identity: &Identity,
    now: Timestamp,
) -> Result<(SessionRow, Cookie<'static>), ApiError> {
    let secret = Secret::new();
    let sealed = secret
        .seal(token)
        .ok_or(ApiError::unauthorized("the token could not be encrypted"))?;
    let ends = now + LASTS_FOR;
    let session = SessionRow {
        id: Uuid::new_v4(),
        digest: secret.digest(),
        sealed,
        actor: identity.actor.to_string(),
        address: request.peer_addr().map(|address| address.ip().to_string()),
        signed_in_at: now,
        expires_at: identity.expires_at.map_or(ends, |end| end.min(ends)),
    };
    Ok((session, cookie(request, secret.text())))
}

/// What makes a browser forget the session.
pub(crate) fn forget(request: &HttpRequest) -> Cookie<'static> {
    let mut cookie = cookie(request, String::new());
    cookie.make_removal();
    cookie
}

/// It is a session cookie of the browser, too: it ends with the browser, at the latest.
fn cookie(request: &HttpRequest, value: String) -> Cookie<'static> {
    let is_secure = request.connection_info().scheme() == "https";
    Cookie::build(COOKIE, value)
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_secure)
        .finish()
}

/// What the session of a request was signed in with; `None`: the request has none.
pub(crate) async fn credentials(
    request: &HttpRequest,
    now: Timestamp,
) -> Result<Option<Credentials>, ApiError> {
    let Some(cookie) = request.cookie(COOKIE).filter(|cookie| !cookie.value().is_empty()) else {
        return Ok(None);
    };
    let Some(state) = request.app_data::<web::Data<State>>() else {
        return Ok(None);
    };
    refuse_other_pages(request)?;
    let ended = || ApiError::unauthorized("the session has ended; sign in again");
    let secret = Secret::read(cookie.value()).ok_or_else(ended)?;
    let digest = secret.digest();
    let session = ringfence_db::session_of(&mut state.engine.db().reader(), &digest, now).await?;
    let session = session.ok_or_else(ended)?;
    Ok(Some(Credentials {
        token: secret.open(&session.sealed).ok_or_else(ended)?,
        service_token: None,
        session: Some(OwnSession {
            id: session.id,
            digest,
        }),
    }))
}

/// Whether a session is on record and not over.
pub(crate) async fn stands(state: &State, session: &OwnSession, now: Timestamp) -> Result<bool, ApiError> {
    let found = ringfence_db::session_of(&mut state.engine.db().reader(), &session.digest, now).await?;
    Ok(found.is_some())
}

/// A browser sends the cookie with what another page makes it ask: `SameSite` keeps it from that, and this does where a browser does not know
/// `SameSite`, or where the other page is of another port of this machine.
fn refuse_other_pages(request: &HttpRequest) -> Result<(), ApiError> {
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(());
    }
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap_or("?"))
    };
    let is_own = match (header("sec-fetch-site"), header("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => is_origin(origin, request.connection_info().host()),
        (None, None) => false,
    };
    is_own.then_some(()).ok_or(ApiError::OtherPage)
}

fn is_origin(origin: &str, host: &str) -> bool {
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_opened_by_its_own_cookie_alone() {
        let (secret, other) = (Secret::new(), Secret::new());
        let sealed = secret.seal("rf_token").unwrap();
        assert!(!sealed.contains("rf_token"));
        let read = Secret::read(&secret.text()).unwrap();
        assert_eq!(read.open(&sealed).as_deref(), Some("rf_token"));
        assert_eq!(other.open(&sealed), None);
        assert_ne!(other.digest(), secret.digest());
        assert!(Secret::read("short").is_none());
    }
}
