//! A Chromium without a screen, used as a person uses it: by what is shown, by what a screen reader says, and by keys.

mod acting;
mod checks;
mod commands;
mod parts;
mod pictures;
mod waiting;
mod words;

use fantoccini::ClientBuilder;
pub use fantoccini::key::Key;
use hyper_util::client::legacy::connect::HttpConnector;
use ringfence_lab::ChromeDriver;
use serde_json::{Value, json};

pub use self::checks::{Complaint, page_tools};
pub use self::parts::Part;
pub use self::pictures::page_artefacts;

/// What a machine without a screen and without a graphics card needs, and what makes letters and colours equal on every machine.
const FLAGS: [&str; 9] = [
    "--headless=new",
    // The tests run as root, and Chromium's own sandbox refuses that.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--lang=en-US",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
];

/// A browser with one page of a service. It ends with the value.
pub struct Browser {
    client: fantoccini::Client,
    base: String,
    // Dropped last: it ends the browser.
    _driver: ChromeDriver,
}

/// What a person has asked the whole system for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    /// The value of `prefers-color-scheme`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

impl Browser {
    /// Starts a browser for the service with this address. It shows nothing yet.
    pub async fn start(base: &str) -> Self {
        let driver = tokio::task::spawn_blocking(|| ChromeDriver::start().unwrap())
            .await
            .unwrap();
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(&driver))
            .connect(&driver.url())
            .await
            .unwrap();
        let browser = Self {
            client,
            base: base.to_owned(),
            _driver: driver,
        };
        browser.size(1280, 900).await;
        browser.prefer(Scheme::Light).await;
        browser
    }

    /// Opens a path of the service, and waits until its files are loaded.
    pub async fn open(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.base)).await.unwrap();
    }

    /// Loads the page anew.
    pub async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }

    /// Goes back as by the browser's button.
    pub async fn back(&self) {
        self.client.back().await.unwrap();
    }

    /// The address of the page, from its path on.
    pub async fn place(&self) -> String {
        let url = self.client.current_url().await.unwrap();
        url[url::Position::BeforePath..].to_owned()
    }

    /// A window on a desk or a wall.
    pub async fn size(&self, width: u32, height: u32) {
        self.metrics(width, height, false).await;
    }

    /// The narrowest phone: 360 px.
    pub async fn phone(&self) {
        self.metrics(360, 740, true).await;
    }

    async fn metrics(&self, width: u32, height: u32, is_mobile: bool) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_mobile });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// The colours that the system is set to. Nothing moves, so that pictures are still.
    pub async fn prefer(&self, scheme: Scheme) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme.name() },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features }))
            .await;
    }

    /// The zone of the reader's clock, such as `Asia/Tokyo`.
    pub async fn time_zone(&self, name: &str) {
        self.devtools("Emulation.setTimezoneOverride", json!({ "timezoneId": name }))
            .await;
    }

    /// Ends the browser in order.
    pub async fn close(self) {
        self.client.clone().close().await.unwrap();
    }
}

fn capabilities(driver: &ChromeDriver) -> serde_json::Map<String, Value> {
    let profile = format!("--user-data-dir={}", driver.profile().display());
    let flags = FLAGS.iter().map(|&flag| flag.to_owned());
    let flags: Vec<_> = flags.chain([profile]).collect();
    let wanted = json!({
        "goog:chromeOptions": { "binary": driver.chromium(), "args": flags },
        "goog:loggingPrefs": { "browser": "ALL" },
    });
    match wanted {
        Value::Object(wanted) => wanted,
        other => panic!("{other} is no object"),
    }
}
