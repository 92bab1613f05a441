//! One answer for all who asked before it was looked for.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// Looks for an answer on behalf of all who wait for one.
pub(crate) struct SharedAnswer<T> {
    /// How many have asked.
    asked: AtomicU64,
    last: Mutex<Option<Answer<T>>>,
}

struct Answer<T> {
    /// How many had asked when the look began: it counts for all of them.
    counts_for: u64,
    answer: T,
}

impl<T> Default for SharedAnswer<T> {
    fn default() -> Self {
        Self {
            asked: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }
}

impl<T: Clone> SharedAnswer<T> {
    /// An answer from a look that began after this call.
    pub async fn get<F: Future<Output = T>>(&self, look: impl FnOnce() -> F) -> T {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some(last) = &*last
            && number < last.counts_for
        {
            return last.answer.clone();
        }
        let counts_for = self.asked.load(Ordering::SeqCst);
        let answer = look().await;
        *last = Some(Answer {
            counts_for,
            answer: answer.clone(),
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn those_who_ask_during_a_look_share_the_next_one() {
        let (shared, gate) = (Arc::new(SharedAnswer::default()), Arc::new(Notify::new()));
        let looks = Arc::new(AtomicU64::new(0));
        let ask = || {
            let (shared, gate, looks) = (Arc::clone(&shared), Arc::clone(&gate), Arc::clone(&looks));
            tokio::spawn(async move {
                let look = || async {
                    let number = looks.fetch_add(1, Ordering::SeqCst);
                    gate.notified().await;
                    number
                };
                shared.get(look).await
            })
        };
        let first = ask();
        tokio::task::yield_now().await;
        let others = [ask(), ask(), ask()];
        tokio::task::yield_now().await;
        gate.notify_one();
        assert_eq!(first.await.unwrap(), 0);
        tokio::task::yield_now().await;
        gate.notify_one();
        for other in others {
            assert_eq!(other.await.unwrap(), 1, "the look had begun before the question");
        }
        let next = ask();
        gate.notify_one();
        assert_eq!(next.await.unwrap(), 2, "an answer from before the question");
    }
}
