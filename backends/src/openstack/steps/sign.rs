//! Signs of life of a `nova-compute`.

use crate::openstack::ComputeService;
use chrono::{DateTime, Utc};

/// The last sign of life, and the settings of administrators at that time: Nova stores the time of a change of those in the field of the
/// last sign of life.
#[derive(Clone, Debug)]
pub(super) struct Sign {
    at: Option<DateTime<Utc>>,
    settings: (bool, String, Option<String>),
}

impl Sign {
    pub fn of(service: &ComputeService) -> Self {
        Self {
            at: service.updated_at,
            settings: (
                service.forced_down,
                service.status.clone(),
                service.disabled_reason.clone(),
            ),
        }
    }

    /// Whether this sign of life is newer, and no administrator's change has caused it.
    pub fn came_after(&self, known: &Self) -> bool {
        self.at > known.at && self.settings == known.settings
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sign(second: u32, reason: &str) -> Sign {
        let service = json!({
            "id": "1", "binary": "nova-compute", "host": "c1", "state": "down", "status": "disabled",
            "disabled_reason": reason, "forced_down": true, "updated_at": format!("2026-01-01T12:00:{second:02}.000000"),
        });
        Sign::of(&serde_json::from_value(service).unwrap())
    }

    #[test]
    fn a_setting_by_an_administrator_is_no_sign_of_life() {
        let known = sign(10, "fenced");
        assert!(sign(11, "fenced").came_after(&known));
        assert!(!sign(10, "fenced").came_after(&known));
        assert!(!sign(11, "broken").came_after(&known));
    }
}
