//! The behaviour of both databases: each test runs on each.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod audit;
mod checks;
mod configuration;
mod devices;
mod evacuating;
mod events;
mod faults;
mod finding;
mod host_parameters;
mod idempotency;
mod indexes;
mod listing;
mod locking;
mod migrating;
mod outbox;
mod past_operations;
mod permits;
mod placing;
mod problems;
mod promises;
mod quiet_time;
mod retention;
mod rig;
mod sessions;
mod shared_devices;
mod site;
mod subscriptions;
mod transactions;
mod values;

/// Makes the tests of a module for both databases.
macro_rules! stories {
    ($module:ident: $($story:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    let rig = crate::rig::Rig::sqlite().await;
                    crate::$module::$story(&rig).await;
                    rig.end().await;
                }
            )+
        }

        mod postgresql {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    let rig = crate::rig::Rig::postgresql().await;
                    crate::$module::$story(&rig).await;
                    rig.end().await;
                }
            )+
        }
    };
}
pub(crate) use stories;
