//! What the page shows in words.

use super::Browser;

const SCRIPT: &str = include_str!("words.js");

impl Browser {
    /// All words that are shown, one block a line.
    pub async fn words(&self) -> String {
        self.words_if_any().await.unwrap_or_default()
    }

    /// `None` while a page gives way to the next.
    pub(super) async fn words_if_any(&self) -> Option<String> {
        let told = self.client.execute(SCRIPT, Vec::new()).await.ok()?;
        told.as_str().map(str::to_owned)
    }

    /// Waits until the page shows these words within one block.
    #[track_caller]
    pub fn until_says<'a>(&'a self, words: &'a str) -> impl Future<Output = ()> + 'a {
        self.until(format!("the page says {words:?}"), async move || {
            let shown = self.words_if_any().await?;
            shown.contains(words).then_some(())
        })
    }

    /// Waits until the page shows these words no more.
    #[track_caller]
    pub fn until_says_no_more<'a>(&'a self, words: &'a str) -> impl Future<Output = ()> + 'a {
        self.until(format!("the page says {words:?} no more"), async move || {
            let shown = self.words_if_any().await?;
            (!shown.contains(words)).then_some(())
        })
    }

    /// Waits until the page's address is this one, from its path on.
    #[track_caller]
    pub fn until_at<'a>(&'a self, place: &'a str) -> impl Future<Output = ()> + 'a {
        self.until(format!("the page is at {place}"), async move || {
            (self.place().await == place).then_some(())
        })
    }
}
