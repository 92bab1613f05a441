//! Masakari, notified that a host is dead.

use std::time::{Duration, Instant};

use super::Pair;
use crate::error::BenchError;

/// How long Masakari may take to see that a recovery is done.
const END: Duration = Duration::from_secs(60);
/// How long an engine may take to start.
const START: Duration = Duration::from_secs(120);

/// When Masakari is notified that the host is dead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// When the host dies.
    AtOnce,
    /// When Nova takes the host for down by itself.
    OnceNovaHasSeenIt,
}

/// Recovers the host; returns the time from the notification on, in seconds.
pub fn recover(pair: &Pair, told: Told) -> Result<f64, BenchError> {
    let (dying, other) = (pair.dying.name.as_str(), pair.other.name.as_str());
    let cloud = &pair.cloud;
    let segment = cloud.make_segment(&format!("segment-of-{dying}"), &[dying, other])?;
    // Waits for the notification of a living host, which shows that the engine works.
    let alive = cloud.notify_of_living_host(other)?;
    cloud.follow(&alive.id, START)?;
    pair.cut_power()?;
    if told == Told::OnceNovaHasSeenIt {
        cloud.wait_state(dying, false)?;
    }
    let begun = Instant::now();
    let notification = cloud.notify_of_dead_host(dying)?;
    let recovered = pair.until_recovered()?;
    let ended = cloud.follow(&notification.id, END)?;
    if ended.status != "finished" {
        return Err(BenchError::Unexpected {
            what: format!("Masakari's notification of {dying}"),
            found: ended.status,
        });
    }
    cloud.delete_segment(&segment)?;
    Ok((recovered - begun).as_secs_f64())
}
