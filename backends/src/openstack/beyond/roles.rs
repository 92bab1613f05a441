//! The roles of the token, which the crate does not show.

use serde::Deserialize;

use super::service::KEYSTONE;
use crate::BackendError;
use crate::openstack::Cloud;

#[derive(Deserialize)]
struct Token {
    roles: Vec<Role>,
}

#[derive(Deserialize)]
struct Role {
    name: String,
}

impl Cloud {
    /// The names of the roles that the token has.
    pub(in crate::openstack) async fn roles(&self) -> Result<Vec<String>, BackendError> {
        let request = self.get(KEYSTONE, &["auth", "tokens"]);
        let token: Token = request.token_in("X-Subject-Token").read("token").await?;
        Ok(token.roles.into_iter().map(|role| role.name).collect())
    }
}
