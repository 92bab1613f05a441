//! Keystone, where the API takes its tokens.

use ringfence_api::check_keystone;

use super::Report;
use crate::config::Settings;
use crate::error::error_chain;
use crate::services::identity;

const PART: &str = "keystone";

pub(super) async fn look(settings: &Settings, report: &mut Report) {
    let config = match identity::keystone(&settings.keystone) {
        Ok(Some(config)) => config,
        Ok(None) => return,
        Err(error) => return report.failure(PART, error_chain(&error), "mend the section [keystone]"),
    };
    match check_keystone(&config).await {
        Ok(()) => report.good(PART, format!("{} can be asked about tokens", config.url())),
        Err(error) => report.failure(
            PART,
            error_chain(&error),
            "start it, or mend the section [keystone]; until then only static tokens work",
        ),
    }
}
