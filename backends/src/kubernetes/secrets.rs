//! Secrets of the cluster, in Ringfence's own namespace.

use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use super::Cluster;
use crate::BackendError;

/// What was found in the place of a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum FoundSecret {
    /// The value.
    Value(Vec<u8>),
    /// There is no such Secret.
    NoSecret,
    /// The Secret does not have the key.
    NoKey,
}

/// Hides the value.
impl fmt::Debug for FoundSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(_) => "Value",
            Self::NoSecret => "NoSecret",
            Self::NoKey => "NoKey",
        })
    }
}

impl Cluster {
    /// The value of a key of a Secret in Ringfence's own namespace.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses.
    pub async fn secret(&self, name: &str, key: &str) -> Result<FoundSecret, BackendError> {
        let api: Api<Secret> = Api::namespaced(self.client().await?.clone(), &self.settings().namespace);
        let Some(secret) = self.call(api.get_opt(name)).await? else {
            return Ok(FoundSecret::NoSecret);
        };
        let value = secret.data.and_then(|mut data| data.remove(key));
        Ok(value.map_or(FoundSecret::NoKey, |value| FoundSecret::Value(value.0)))
    }

    /// The namespace of Ringfence's own objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.settings().namespace
    }
}
