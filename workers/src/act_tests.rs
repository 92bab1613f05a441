use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Its worker stands still for so long while the device is read.
struct Stalling {
    lasts: Duration,
    commands: AtomicUsize,
}

#[async_trait]
impl Device for Stalling {
    async fn read(&self, _: Instant) -> Reading {
        std::thread::sleep(self.lasts);
        Reading::State(ObservedState::Off, "off".to_owned())
    }

    async fn command(&self, _: FencingKind, _: Instant) -> Answer {
        self.commands.fetch_add(1, Ordering::Relaxed);
        Answer::Sent("done".to_owned())
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(1)
    }
}

async fn act_on(device: &Stalling, kind: FencingKind, budget: Duration) -> Outcome {
    let secrets = Secrets::default();
    let clock: Clock = Arc::new(|| "2026-01-01T12:00:00Z".parse().unwrap());
    let time = TimeGiven::of(budget);
    act_and_observe(device, kind, &secrets, &clock, time)
        .await
        .outcome
}

/// What is ready is taken before the time is looked at: a command would go out however late it is.
#[tokio::test]
async fn a_worker_whose_time_has_run_out_commands_nothing() {
    let device = Stalling {
        lasts: Duration::from_millis(60),
        commands: AtomicUsize::new(0),
    };
    let off = act_on(&device, FencingKind::PowerOff, Duration::ZERO).await;
    assert_eq!(off, Outcome::Unknown);
    let on = act_on(&device, FencingKind::PowerOn, Duration::from_millis(30)).await;
    assert_eq!(on, Outcome::Unknown);
    assert_eq!(device.commands.load(Ordering::Relaxed), 0);
}
