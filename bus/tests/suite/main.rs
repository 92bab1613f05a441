//! The behaviour of both buses: each test runs on each.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod amqp;
mod dead_letters;
mod delivery;
mod keys;
mod questions;
mod rabbit;
mod rig;
mod together;

/// Makes the tests of a module for both buses.
macro_rules! stories {
    ($module:ident: $($story:ident),+ $(,)?) => {
        mod in_process {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    crate::$module::$story(crate::rig::Rig::in_process().await).await;
                }
            )+
        }

        mod rabbitmq {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    crate::$module::$story(crate::rig::Rig::amqp().await).await;
                }
            )+
        }
    };
}
pub(crate) use stories;
