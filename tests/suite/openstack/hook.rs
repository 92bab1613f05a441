//! The scheduler hook that the cloud's Nova asks.

use std::sync::Arc;
use std::thread::JoinHandle;

use ringfence_api::{ApiConfig, Application, RateLimits, StreamLimits, Tokens, hash_token};
use ringfence_db::Database;
use ringfence_engine::{Clock, ClockSource};
use ringfence_lab::{Cloud, HOOK_TOKEN};
use ringfence_scheduler_hook::{Hook, HookConfig};
use ringfence_tests::Stack;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

/// A running hook. It ends when the value is dropped.
pub struct Asked {
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Asked {
    /// Starts a hook on this stack's database, at the address that the cloud is configured with.
    pub async fn start(cloud: &Cloud, stack: &Stack) -> Self {
        let db = Database::open(&stack.site.database_url, 4).await.unwrap();
        let clock = Clock::start(ClockSource::Database, &db).await.unwrap();
        let config = ApiConfig {
            listen: cloud.description().hook,
            max_body_bytes: 65_536,
            threads: 1,
            are_metrics_public: true,
            tls: None,
            keystone: None,
            limits: RateLimits::OFF,
            streams: StreamLimits {
                of_one_caller: 1,
                in_all: 1,
            },
            recheck_every: std::time::Duration::from_secs(30),
        };
        let now = clock.clone();
        let hook = Hook::new(db, Arc::new(move || now.now()), HookConfig::default());
        let application = Application::build_hook(config, hook, clock, tokens(stack)).unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(application.run(stopped)).unwrap();
        });
        Self {
            stop,
            serving: Some(serving),
        }
    }
}

/// Nova's token, which has the role `reader`.
fn tokens(stack: &Stack) -> Tokens {
    let path = stack.site.dir.path().join("hook-tokens.toml");
    let sha256 = hash_token(HOOK_TOKEN);
    std::fs::write(
        &path,
        format!("[[token]]\nname = \"nova\"\nrole = \"reader\"\nsha256 = \"{sha256}\"\n"),
    )
    .unwrap();
    Tokens::open(&path).unwrap()
}

impl Drop for Asked {
    /// Waits for the end, because the next hook needs this one's address.
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(serving) = self.serving.take() {
            block_in_place(|| serving.join()).unwrap();
        }
    }
}
