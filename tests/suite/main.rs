//! The whole stack, run as stories, on both grounds.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod ailing;
mod api;
mod cancelling;
mod ceph;
mod checks;
mod clock_set_back;
mod dashboard;
mod deploy;
mod devices;
mod docs;
mod explaining;
mod failures;
mod falling_silent;
mod feed;
mod fencing;
mod groups;
mod heartbeats;
mod kdump;
mod kubernetes;
mod leaving;
mod masakari;
mod messages;
mod metrics;
mod openstack;
mod own_driver;
mod pacemaker;
mod problems;
mod processes;
mod queries;
mod real_hosts;
mod rejoining;
mod retention;
mod scheduler_hook;
mod second_opinions;
mod segments_as_text;
mod sight;
mod simulated;
mod sources;
mod subscriptions;
mod suspended;
mod time;
mod together;

/// Makes a test on each ground of every story.
macro_rules! on_both_grounds {
    ($($story:ident),+ $(,)?) => {
        mod standalone {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(ringfence_tests::Ground::Standalone).await;
            })+
        }
        mod distributed {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(ringfence_tests::Ground::Distributed).await;
            })+
        }
    };
}
pub(crate) use on_both_grounds;
