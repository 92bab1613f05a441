//! The service's hosts.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::client::Client;
use crate::client::view::Host;
use crate::error::CliError;

/// Rows of a page.
const PAGE: &str = "1000";

/// The hosts that `is_wanted` selects, by name.
pub async fn known_hosts(
    client: &Client,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<HashMap<String, Host>, CliError> {
    let mut known = HashMap::new();
    let take = |page: Vec<Value>| {
        for host in page {
            let host = Host::deserialize(host).map_err(|error| CliError::Answer {
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
