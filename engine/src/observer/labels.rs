//! Labels that a platform gives its hosts: hosts have them as the platform has them, beside those that an operator gives.

use std::collections::BTreeMap;

use ringfence_backends::Platform;
use ringfence_core::{CONTROL_PLANE, Labels, Poll, Sign, error_chain, is_of_backend};
use ringfence_db::CloudHost;

use crate::{Context, Engine, HostChange};

/// Hosts that one look gives labels: the next look goes on.
const TOLD_AT_ONCE: usize = 64;

/// The labels of a host as its platform has them. All control planes would be one group if each were known by its label alone.
pub(super) fn of_platform(sign: &Sign, platform: &str) -> Option<Labels> {
    let labels = sign.labels.as_ref()?;
    let value = |name: &str, value: &str| match (name, value) {
        (CONTROL_PLANE, "") => platform.to_owned(),
        (_, value) => value.to_owned(),
    };
    Some(
        labels
            .iter()
            .map(|(name, told)| (name.clone(), value(name, told)))
            .collect(),
    )
}

/// Gives hosts the labels that have changed. `true` if there are more of them.
pub(super) async fn look(engine: &Engine, platform: &dyn Platform, poll: &Poll, hosts: &[CloudHost]) -> bool {
    let signs: BTreeMap<&str, &Sign> = poll.hosts.iter().map(|sign| (sign.host.as_str(), sign)).collect();
    let changed: Vec<(&CloudHost, Labels)> = hosts
        .iter()
        .filter_map(|host| {
            let told = of_platform(signs.get(host.known_as.as_str())?, platform.name())?;
            let own = host.labels.iter().filter(|(name, _)| !is_of_backend(name));
            let own = own.map(|(name, value)| (name.clone(), value.clone()));
            let labels: Labels = own.chain(told).collect();
            (labels != host.labels).then_some((host, labels))
        })
        .collect();
    let are_more = changed.len() > TOLD_AT_ONCE;
    let mut is_any_written = false;
    for (host, labels) in changed.into_iter().take(TOLD_AT_ONCE) {
        let by = Context::own(&platform.label());
        let change = HostChange {
            labels: Some(labels),
            ..HostChange::default()
        };
        let id = host.id.to_string();
        match engine.update_host(&id, change, Some(host.revision), &by).await {
            Ok(_) => is_any_written = true,
            // One that was changed since is read anew by the next look.
            Err(error) => {
                tracing::debug!(host = host.name, error = %error_chain(&error), "the labels of a host could not be taken down");
            }
        }
    }
    // Those that cannot be written are not tried without a pause.
    are_more && is_any_written
}
