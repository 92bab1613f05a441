//! A Nova API that belongs to one test.

use std::path::PathBuf;
use std::time::Duration;

use crate::cloud::Cloud;
use crate::error::{During, LabError};
use crate::home::{Home, note_second_start, wait_ready};
use crate::leash::Leash;
use crate::net::{answers, free_tcp_port};
use crate::openstack::gate;
use crate::openstack::program::Program;

const READY_LIMIT: Duration = Duration::from_secs(120);
/// A start that takes longer is tried once more: sometimes the process hangs for ever during its start.
const HANGS_AFTER: Duration = Duration::from_secs(60);
/// The end of the pipeline: the caller is known at this point, and the request has changed nothing yet.
const APPLICATION: &str = " keystonecontext ringfence osapi_compute_app_v21";

/// Middleware of a test, right before Nova itself.
#[derive(Clone, Debug)]
pub struct WsgiFilter {
    /// The factory, as `package.module:factory`.
    pub factory: String,
    /// The folder of the package.
    pub python_path: PathBuf,
    /// The factory's settings.
    pub settings: Vec<(String, String)>,
}

/// The differences between a Nova API and the shared one.
#[derive(Clone, Debug, Default)]
pub struct NovaApiOptions {
    /// Middleware of the test.
    pub filter: Option<WsgiFilter>,
    /// Sections of the configuration that replace the shared one's.
    pub settings: String,
}

/// One more API process on a port of its own. It uses the database and the broker of the shared one, and can be killed.
#[derive(Debug)]
pub struct NovaApi {
    leash: Option<Leash>,
    cloud: Cloud,
    options: NovaApiOptions,
    port: u16,
    home: Home,
}

impl Cloud {
    /// Starts a Nova API.
    ///
    /// # Errors
    /// If the API does not answer within two minutes.
    pub fn nova_api(&self, options: NovaApiOptions) -> Result<NovaApi, LabError> {
        let mut api = NovaApi {
            leash: None,
            cloud: self.clone(),
            options,
            port: free_tcp_port()?,
            home: Home::new("nova-api")?,
        };
        api.configure()?;
        api.start_again()?;
        Ok(api)
    }
}

impl NovaApi {
    /// The API's address, with `/v2.1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v2.1", self.port)
    }

    /// The API's log so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Kills the API.
    pub fn kill(&mut self) {
        if let Some(mut leash) = self.leash.take() {
            leash.crash();
        }
    }

    /// Starts the API on its former port and waits until it answers.
    ///
    /// # Errors
    /// If the API does not answer within two minutes.
    pub fn start_again(&mut self) -> Result<(), LabError> {
        let description = self.cloud.description();
        let shared = ["nova.conf", "nova-db.conf"].map(|name| description.etc(name));
        let mut program = Program::python(
            &description.folder,
            "nova-api-os-compute",
            "nova.cmd.api_os_compute",
        )
        .configured(shared);
        program = gate::asking(program, description.etc(gate::SETTINGS))
            .configured([self.home.text("nova-api.conf")]);
        if let Some(filter) = &self.options.filter {
            let path = format!("{}:{}", gate::PACKAGE, filter.python_path.display());
            program = program.with("PYTHONPATH", path);
        }
        let log = self.log_file();
        let program = program.with_nothing_to_keep();
        let start = || program.clone().start(&log, self.home.path());
        let wait = |leash: &Leash, limit| wait_ready("nova-api", leash, &log, limit, || answers(self.port));
        let mut leash = start()?;
        if wait(&leash, HANGS_AFTER).is_err() {
            note_second_start(&log);
            leash.abort();
            leash = start()?;
            wait(&leash, READY_LIMIT)?;
        }
        self.leash = Some(leash);
        Ok(())
    }

    fn configure(&self) -> Result<(), LabError> {
        let state = self.home.make_folder("state")?;
        let (port, state, paste) = (self.port, state.display(), self.home.text("api-paste.ini"));
        let text = format!(
            "[DEFAULT]\nosapi_compute_listen_port = {port}\nstate_path = {state}\n[wsgi]\napi_paste_config = {paste}\n{}",
            self.options.settings
        );
        self.home.write("nova-api.conf", &text)?;
        self.home.write("api-paste.ini", &self.pipeline()?).map(|_| ())
    }

    fn pipeline(&self) -> Result<String, LabError> {
        let file = self.cloud.description().etc("nova-api-paste.ini");
        let text = std::fs::read_to_string(&file).during(|| format!("reading {file}"))?;
        let Some(filter) = &self.options.filter else {
            return Ok(text);
        };
        if !text.contains(APPLICATION) {
            return Err(LabError::Failed {
                program: file,
                output: format!("nova-api's paste file has no pipeline that ends in{APPLICATION}"),
            });
        }
        let with_filter = " keystonecontext ringfence of_the_test osapi_compute_app_v21";
        let settings: String = filter
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"))
            .collect();
        Ok(format!(
            "{}\n[filter:of_the_test]\npaste.filter_factory = {}\n{settings}",
            text.replace(APPLICATION, with_filter),
            filter.factory
        ))
    }

    fn log_file(&self) -> PathBuf {
        self.home.join("nova-api.log")
    }
}

impl Drop for NovaApi {
    fn drop(&mut self) {
        self.kill();
    }
}
