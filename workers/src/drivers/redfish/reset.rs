//! How a system wants to be reset (`ComputerSystem.Reset`, DSP0268).

use ringfence_core::FencingKind;
use serde_json::Value;

/// Where to send a reset, and which ones the system knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reset {
    pub target: String,
    allowed: Option<Vec<String>>,
}

impl Reset {
    /// From a system's own description; where it tells nothing, what the schema says.
    pub(super) fn of(system: &Value, path: &str) -> Self {
        let action = &system["Actions"]["#ComputerSystem.Reset"];
        let target = action["target"].as_str().map_or_else(
            || format!("{}/Actions/ComputerSystem.Reset", path.trim_end_matches('/')),
            str::to_owned,
        );
        let allowed = action["ResetType@Redfish.AllowableValues"]
            .as_array()
            .map(|values| {
                values
                    .iter()
                    .filter_map(|value| value.as_str().map(str::to_owned))
                    .collect()
            });
        Self { target, allowed }
    }

    /// The reset that does the task. A system that does not list the plain one may still know its nearest; what became of it is
    /// read back in any case.
    pub(super) fn kind(&self, task: FencingKind) -> Option<&'static str> {
        let wishes = match task {
            FencingKind::PowerOff => ["ForceOff", "GracefulShutdown"],
            FencingKind::PowerOn => ["On", "ForceOn"],
            _ => return None,
        };
        let listed = |wish: &&str| {
            self.allowed
                .as_ref()
                .is_none_or(|allowed| allowed.iter().any(|a| a == wish))
        };
        wishes.into_iter().find(listed).or(Some(wishes[0]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reset(action: &Value) -> Reset {
        Reset::of(
            &json!({ "Actions": { "#ComputerSystem.Reset": action } }),
            "/redfish/v1/Systems/1/",
        )
    }

    #[test]
    fn the_system_says_where_a_reset_goes_and_the_schema_where_it_does_not() {
        assert_eq!(reset(&json!({ "target": "/x" })).target, "/x");
        assert_eq!(
            reset(&json!({})).target,
            "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
        );
    }

    #[test]
    fn force_off_is_preferred_and_taken_where_nothing_is_listed() {
        let with = |values: Value| reset(&json!({ "ResetType@Redfish.AllowableValues": values }));
        assert_eq!(
            with(json!(["On", "GracefulShutdown", "ForceOff"])).kind(FencingKind::PowerOff),
            Some("ForceOff")
        );
        assert_eq!(
            with(json!(["On", "GracefulShutdown"])).kind(FencingKind::PowerOff),
            Some("GracefulShutdown")
        );
        assert_eq!(
            with(json!(["ForceOn"])).kind(FencingKind::PowerOn),
            Some("ForceOn")
        );
        assert_eq!(with(json!([])).kind(FencingKind::PowerOff), Some("ForceOff"));
        assert_eq!(with(Value::Null).kind(FencingKind::PowerOn), Some("On"));
    }
}
