//! A ChromeDriver, through which a test uses a Chromium without a screen.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::LabError;
use crate::home::{Home, wait_ready};
use crate::leash::{Leash, Start};
use crate::programs::find_program;

/// The fonts of every page, so that each machine draws a page with equal letters.
const FONTS: &str = include_str!("browser.fonts.conf");
const READY_LIMIT: Duration = Duration::from_secs(60);
/// What the driver prints before the port that it has taken.
const READY: &str = "started successfully on port ";
/// Variables by which a browser would use the screen or the files of the user who runs the tests.
const OF_THE_USER: &[&str] = &[
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// A running ChromeDriver on a loopback port of its own. The browsers that it has started end with it.
#[derive(Debug)]
pub struct ChromeDriver {
    leash: Leash,
    port: u16,
    chromium: PathBuf,
    home: Home,
}

impl ChromeDriver {
    /// Starts the driver. It starts a browser when a session is asked for.
    ///
    /// # Errors
    /// If Chromium or its driver is not installed, or the driver is not ready within a minute.
    pub fn start() -> Result<Self, LabError> {
        let chromium = installed("chromium", "chromium")?;
        let driver = installed("chromedriver", "chromium-driver")?;
        let home = Home::new("browser")?;
        home.write("fonts.conf", FONTS)?;
        let log = home.join("chromedriver.log");
        let leash = Leash::start(Start {
            arguments: vec!["--port=0".to_owned()],
            environment: vec![
                ("HOME", home.text("")),
                ("TMPDIR", home.text("")),
                ("FONTCONFIG_FILE", home.text("fonts.conf")),
                ("LANG", "C.UTF-8".to_owned()),
                ("TZ", "UTC".to_owned()),
            ],
            without: OF_THE_USER,
            ..Start::new(&driver, &log, home.path())
        })?;
        let mut port = None;
        wait_ready("chromedriver", &leash, &log, READY_LIMIT, || {
            port = port_in(&log);
            port.is_some()
        })?;
        Ok(Self {
            leash,
            port: port.unwrap_or_default(),
            chromium,
            home,
        })
    }

    /// The address of the driver.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The program of the browser.
    #[must_use]
    pub fn chromium(&self) -> &Path {
        &self.chromium
    }

    /// A folder for the profile of a browser.
    #[must_use]
    pub fn profile(&self) -> PathBuf {
        self.home.join("profile")
    }
}

impl Drop for ChromeDriver {
    fn drop(&mut self) {
        self.leash.stop();
        // A browser that is being killed may write a file meanwhile.
        self.home.remove();
    }
}

fn installed(program: &'static str, package: &'static str) -> Result<PathBuf, LabError> {
    find_program(program).ok_or(LabError::Missing { program, package })
}

/// The port that the driver has printed: it is taken by the driver itself, so that no other program can take it meanwhile.
fn port_in(log: &Path) -> Option<u16> {
    let printed = std::fs::read_to_string(log).ok()?;
    let (_, rest) = printed.split_once(READY)?;
    let (port, _) = rest.split_once('.')?;
    port.parse().ok()
}
