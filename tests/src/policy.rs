//! The policy of segments in tests.

use serde_json::{Value, json};

use crate::{Answer, Client};

/// A segment's policy with no settling time, so that tests about other rules do not wait for it.
pub fn policy(more: Value) -> Value {
    let mut policy = json!({ "settle_s": 0 });
    if let (Some(policy), Value::Object(more)) = (policy.as_object_mut(), more) {
        policy.extend(more);
    }
    policy
}

impl Client {
    /// Gives the default segment this policy.
    pub async fn set_default_policy(&self, more: Value) -> Answer {
        let segment = json!({ "name": "default", "policy": policy(more) });
        self.put("/segments/default", segment).await
    }
}
