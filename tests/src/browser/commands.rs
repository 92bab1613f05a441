//! Commands of Chromium that WebDriver does not have. ChromeDriver passes them on.

use fantoccini::error::CmdError;
use fantoccini::wd::WebDriverCompatibleCommand;
use http::Method;
use serde_json::{Value, json};
use url::{ParseError, Url};

use super::Browser;

/// A POST to a path below the session.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/{}", self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

impl Browser {
    /// Carries out a command of the DevTools protocol.
    pub(super) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.try_devtools(command, parameters).await.unwrap()
    }

    /// The error is for commands about a part of the page that may have gone.
    pub(super) async fn try_devtools(&self, command: &str, parameters: Value) -> Result<Value, CmdError> {
        let body = json!({ "cmd": command, "params": parameters });
        self.extension("goog/cdp/execute", body).await
    }

    /// What the browser has logged since the last call.
    pub(super) async fn log(&self) -> Value {
        self.extension("se/log", json!({ "type": "browser" }))
            .await
            .unwrap()
    }

    async fn extension(&self, path: &'static str, body: Value) -> Result<Value, CmdError> {
        self.client.issue_cmd(Extension { path, body }).await
    }

    /// Runs the body of a function in the page and returns its value. The page's policy against inline scripts is none against its tester.
    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute(script, arguments).await.unwrap()
    }

    /// Runs the body of a function whose last argument is to be called with its value.
    pub(super) async fn run_and_wait(&self, script: &str) -> Value {
        self.client.execute_async(script, Vec::new()).await.unwrap()
    }
}
