//! The scheduler hook beside an engine in one process: every event of the engine's feed makes the hook look again.

use std::time::Duration;

use ringfence_db::last_sequence;
use ringfence_engine::Engine;
use ringfence_scheduler_hook::Hook;
use tokio::time::sleep;

/// What is waited after the feed could not be read. The hook looks by itself meanwhile.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Follows the feed without end.
pub(crate) async fn follow(engine: &Engine, hook: &Hook) {
    loop {
        if let Ok(last) = last_sequence(&mut engine.db().reader()).await {
            let mut listener = engine.listen_within(last);
            hook.nudge();
            while listener.next().await.is_ok() {
                hook.nudge();
            }
        }
        sleep(AGAIN_AFTER).await;
    }
}
