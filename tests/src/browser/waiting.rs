//! Waiting for what a page comes to show.

use std::panic::Location;
use std::time::{Duration, Instant};

use super::{Browser, page_artefacts};

const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks at the page.
const GLANCE: Duration = Duration::from_millis(60);

impl Browser {
    /// Waits until the probe finds something. If it does not, the panic says what was waited for, where, and what the page shows instead.
    #[track_caller]
    pub fn until<'a, T: 'a>(
        &'a self,
        what: String,
        mut probe: impl AsyncFnMut() -> Option<T> + 'a,
    ) -> impl Future<Output = T> + 'a {
        let caller = Location::caller();
        async move {
            let deadline = Instant::now() + PATIENCE;
            loop {
                if let Some(found) = probe().await {
                    return found;
                }
                if Instant::now() >= deadline {
                    let shown = self.shown().await;
                    panic!("after {PATIENCE:?}, it was not so at {caller} that {what}; {shown}");
                }
                tokio::time::sleep(GLANCE).await;
            }
        }
    }

    /// What the page shows, for the reader of a failure. A picture of it is kept.
    pub(super) async fn shown(&self) -> String {
        let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
        let picture = page_artefacts().join(format!("failed-{test}.png"));
        std::fs::write(&picture, self.screenshot().await).unwrap();
        format!(
            "the page at {} says:\n{}\n\nfor a screen reader it has:\n{}\n\nits console:\n{}\n\na picture: {}",
            self.place().await,
            self.words().await,
            self.outline().await,
            self.log().await,
            picture.display(),
        )
    }
}
