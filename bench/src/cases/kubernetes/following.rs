//! What a watch of the cluster shows, each with the time at which it arrived here.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::BenchError;

/// How many changes may wait to be read.
const WAITING: usize = 65_536;

/// A change of an object.
pub struct Seen<K> {
    pub at: Instant,
    pub object: K,
    /// Whether the object is gone, and this is what it was last.
    pub is_gone: bool,
}

/// Follows objects from now on. Those that were there at the beginning come first.
pub struct Following<K> {
    seen: mpsc::Receiver<Seen<K>>,
    task: JoinHandle<()>,
}

impl<K> Following<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    pub fn begin(api: Api<K>, config: watcher::Config) -> Self {
        let (sender, seen) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
            while let Some(event) = stream.next().await {
                let at = Instant::now();
                let (object, is_gone) = match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
                    Ok(Event::Delete(object)) => (object, true),
                    // What breaks is opened anew.
                    Ok(Event::Init | Event::InitDone) | Err(_) => continue,
                };
                if sender.send(Seen { at, object, is_gone }).await.is_err() {
                    return;
                }
            }
        });
        Self { seen, task }
    }

    /// The next change that is as wanted; those before it are dropped.
    pub async fn until(
        &mut self,
        what: &str,
        patience: Duration,
        is_so: impl Fn(&Seen<K>) -> bool,
    ) -> Result<Seen<K>, BenchError> {
        let late = || BenchError::Late {
            what: what.to_owned(),
            seconds: patience.as_secs(),
        };
        let search = async {
            loop {
                match self.seen.recv().await {
                    Some(seen) if is_so(&seen) => return Some(seen),
                    Some(_) => {}
                    None => return None,
                }
            }
        };
        let found = tokio::time::timeout(patience, search).await;
        found.map_err(|_| late())?.ok_or_else(late)
    }

    /// All that has come by now.
    pub fn so_far(&mut self) -> Vec<Seen<K>> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

impl<K> Drop for Following<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
