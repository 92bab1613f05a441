//! Pictures of a page.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Browser, page_tools};

const STILL: &str = include_str!("still.js");
/// The highest picture: a list may be much longer.
const HIGHEST: f64 = 2400.0;

/// The folder for pictures, which is made if it is missing: `target/page`.
pub fn page_artefacts() -> PathBuf {
    // The tools are in `target/lab/page`.
    let folder = page_tools().ancestors().nth(2).unwrap().join("page");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A page that has settled shows equal words in so many looks in a row.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

impl Browser {
    /// A PNG of the whole page, also of what is below the window's end.
    pub async fn screenshot(&self) -> Vec<u8> {
        let metrics = self.devtools("Page.getLayoutMetrics", json!({})).await;
        let side = |part: &str, name: &str| metrics[part][name].as_f64().unwrap();
        let height = side("cssContentSize", "height").max(side("cssLayoutViewport", "clientHeight"));
        let clip = json!({
            "x": 0, "y": 0, "scale": 1, "width": side("cssLayoutViewport", "clientWidth"), "height": height.min(HIGHEST),
        });
        let wanted = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        let picture = self.devtools("Page.captureScreenshot", wanted).await;
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }

    /// Waits until the page shows no other words any more, but for numbers: all of it has been read.
    pub async fn until_settled(&self) {
        let deadline = Instant::now() + SETTLES_WITHIN;
        let (mut before, mut looks) = (String::new(), 0);
        while looks < LOOKS {
            assert!(Instant::now() < deadline, "the page goes on changing: {before}");
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let words = self.words().await;
            let now: String = words.chars().filter(|c| !c.is_ascii_digit()).collect();
            looks = if now == before { looks + 1 } else { 0 };
            before = now;
        }
    }

    /// A PNG of the page in which times and ids are zeros, and the elements that these selectors find are blank.
    pub async fn still_picture(&self, blank: &[&str]) -> Vec<u8> {
        self.run(STILL, vec![Value::from(blank)]).await;
        self.screenshot().await
    }
}
