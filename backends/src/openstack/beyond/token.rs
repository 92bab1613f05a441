//! The token of a session, for calls that show it in two headers.

use openstack::session::Session;
use openstack::{Error, ErrorKind};

const TOKEN_HEADER: &str = "x-auth-token";

/// The token that the session's calls show. Keystone is asked for a token if the session has none.
pub(super) async fn of(session: &Session) -> Result<String, Error> {
    let client = session.client().inner();
    // The crate shows its token only to a request, which need not be sent.
    let request = session
        .auth_type()
        .authenticate(client, client.get("http://localhost/"))
        .await?
        .build()?;
    let token = request.headers().get(TOKEN_HEADER);
    token
        .and_then(|token| token.to_str().ok())
        .map(str::to_owned)
        .ok_or_else(|| Error::new(ErrorKind::InvalidConfig, "the entry signs in without a token"))
}
