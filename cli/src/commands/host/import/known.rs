//! The service's hosts.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use crate::error::CliError;

/// Rows of a page.
const PAGE: &str = "1000";

/// The configuration of a host.
#[derive(Debug, Deserialize)]
pub struct Known {
    pub name: String,
    #[serde(default)]
    pub segment: String,
    #[serde(default)]
    pub backend: String,
    pub cloud: Option<String>,
    pub known_as: Option<String>,
    #[serde(default, rename = "type")]
    pub host_type: Option<String>,
    #[serde(default)]
    pub zone: String,
    #[serde(default)]
    pub parameters: BTreeMap<String, BTreeMap<String, String>>,
}

/// The hosts that `is_wanted` selects, by name.
pub async fn known_hosts(
    client: &Client,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<HashMap<String, Known>, CliError> {
    let mut known = HashMap::new();
    let take = |page: Vec<Value>| {
        for host in page {
            let host = Known::deserialize(host).map_err(|error| CliError::Answer {
                url: "hosts".to_owned(),
                why: error.to_string(),
            })?;
            if is_wanted(&host.name) {
                known.insert(host.name.clone(), host);
            }
        }
        Ok(true)
    };
    let query = [("limit", Some(PAGE.to_owned()))];
    client.each_page(&["hosts"], &query, take).await?;
    Ok(known)
}
