//! `ringfence standalone`: all services in one process, without other software.
//!
//! The data directory holds all data that has to outlive the process: the database, the tokens, the webhooks' keys, and the simulated world
//! if there is one.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use ringfence_api::{ApiConfig, Application, Role, StartError, Tokens};
use ringfence_bus::{Bus, InProcessBus, Key, Keys};
use ringfence_db::{Database, Filters, Page, SortKey};
use ringfence_engine::Engine;
use ringfence_operator::Operator;
use ringfence_scheduler_hook::Confirmation;
use serde_json::json;

use super::leading::Leading;
use super::{api, certificate, demo, greeting, hangup, home, listen, parts, stop};
use crate::client::API_FILE;
use crate::clock::now;
use crate::config::Settings;
use crate::error::{CliError, error_chain};
use crate::{platforms, tokens, traces};

/// How long claimed attempts may go on when the service is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Runs until the process is told to stop; `demo` adds the simulated hosts.
pub async fn run(settings: Settings, demo: bool) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    let (data_dir, address) = (settings.data_dir()?, settings.standalone.listen);
    let config = ApiConfig {
        tls: api::tls("standalone", settings.standalone_tls()?)?,
        ..api::without_tls(&settings, address)
    };
    if !data_dir.exists() {
        // A service that cannot start leaves no data directory behind.
        listen::check("standalone.listen", address)?;
    }
    let home = Home::open(data_dir)?;
    listen::check("standalone.listen", address)?;
    let leading = Leading::wait(&settings, &config, &stop).await?;
    if stop.is_cancelled() {
        return Ok(());
    }
    if leading.is_some() {
        home.forget_database()?;
    }
    let db = open_database(&home).await?;
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
    let keys = fresh_keys()?;
    let settings = home.with_webhook_keys(settings)?;
    let records = leading.as_ref().map(Leading::records);
    let engine = parts::engine(
        "standalone",
        &settings,
        db,
        Arc::clone(&bus),
        keys.clone(),
        records,
    )
    .await?;
    let operated = platforms::operated(&settings)?;
    let simulators = demo::simulators(&home.path, demo)?;
    let simulator_url = match &simulators {
        Some(simulators) => simulators.url().parse().ok(),
        None => settings.worker.simulator_url.clone(),
    };
    let worker = parts::worker(&settings, bus, keys, simulator_url)?;
    let led = match leading {
        Some(leading) => Some(leading.restore(&engine).await?),
        None => None,
    };
    let mut running = engine.start();
    let lead = led.map(|led| led.watch(engine.clone(), stop.clone()));
    let operator = Operator::start(&engine, operated);
    if let Some(event_sink) = parts::oslo("standalone", &settings)? {
        running.tell(&engine, event_sink);
    }
    let has_tls = config.tls.is_some();
    let mut application = listen(&home, &settings, config, engine.clone())?;
    if let Some(world) = &simulators {
        application = application.with_demo(&world.url()).map_err(unusable)?;
    }
    worker.register_metrics(application.metrics());
    traces::register_metrics(application.metrics());
    let reload = application.reload();
    let _certificate = certificate::follow(reload.clone());
    hangup::on_signal(move || reload.now(now()))?;
    let address = application.address();
    let url = base_url(address, has_tls);
    home.write_address(&url)?;
    let watcher = simulators
        .as_ref()
        .map(|world| demo::watch(engine.clone(), world));
    if demo {
        demo::set_up(&engine).await?;
    }
    match &simulators {
        Some(simulators) => {
            let page = format!("{url}/dashboard#ticket={}", application.ticket(&home.token()?));
            demo::say_what_to_try(&home.path, &url, &page, simulators)?;
        }
        // A log has no reader who waits for advice.
        None if settings.kubernetes.records.is_some() => {}
        None => greeting::say_what_to_do(&home.path, &url, has_hosts(&engine).await)?,
    }
    tracing::info!(%address, data_dir = %home.path.display(), "ready");
    let served = application.run(stop).await.map_err(unusable);
    if let Some(watcher) = watcher {
        watcher.abort();
    }
    home.forget_address();
    operator.stop().await;
    worker.shutdown(GRACE).await;
    running.stop().await;
    engine.db().close().await;
    if let Some(lead) = lead {
        lead.end().await?;
    }
    served
}

/// Whether the service has hosts; if that cannot be read, the advice to add one does no harm.
async fn has_hosts(engine: &Engine) -> bool {
    let page = Page {
        limit: 1,
        marker: None,
        sort: vec![SortKey::Name.ascending()],
    };
    let hosts = ringfence_db::hosts_page(&mut engine.db().reader(), &Filters::default(), &page).await;
    hosts.is_ok_and(|hosts| !hosts.is_empty())
}

fn listen(
    home: &Home,
    settings: &Settings,
    config: ApiConfig,
    engine: Engine,
) -> Result<Application, CliError> {
    let tokens = Tokens::open(&home.admin_token()?).map_err(unusable)?;
    let tokens = match &settings.api.tokens_file {
        Some(more) => tokens.and(more).map_err(unusable)?,
        None => tokens,
    };
    let hook = parts::hook(
        settings,
        engine.db().clone(),
        engine.clock(),
        confirmation(&engine),
    )?;
    let application = Application::build(config, engine, tokens).map_err(unusable)?;
    Ok(application.with_hook(hook))
}

fn unusable(error: StartError) -> CliError {
    CliError::service("standalone", "cannot serve", error)
}

/// A database that is a cache of records may be out of date where another process leads.
fn confirmation(engine: &Engine) -> Confirmation {
    let engine = engine.clone();
    Confirmation::new(move || {
        let engine = engine.clone();
        Box::pin(async move { engine.confirm_lead().await.map_err(|error| error_chain(&error)) })
    })
}

/// Where commands on this machine reach the service. A certificate names no address of every network.
fn base_url(address: SocketAddr, has_tls: bool) -> String {
    match has_tls {
        false => format!("http://{address}"),
        true if address.ip().is_unspecified() || address.ip().is_loopback() => {
            format!("https://localhost:{}", address.port())
        }
        true => format!("https://{address}"),
    }
}

async fn open_database(home: &Home) -> Result<Database, CliError> {
    let fault = |e| CliError::service("standalone", "cannot use its database", e);
    let url = format!("sqlite://{}", home.file(home::DATABASE).display());
    let db = Database::open(&url, 1).await.map_err(fault)?;
    ringfence_db::migrate(&db).await.map_err(fault)?;
    Ok(db)
}

/// The messages within one process need a key that lives as long as the process.
pub fn fresh_keys() -> Result<Keys, CliError> {
    let fault = |e| CliError::service("standalone", "cannot make a signing key", e);
    let mut secret = vec![0; 32];
    random(&mut secret);
    Keys::new(vec![Key::new("standalone", &secret).map_err(fault)?]).map_err(fault)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a key has to be random, and this is where it is made"
)]
fn random(bytes: &mut [u8]) {
    rand::rng().fill_bytes(bytes);
}

/// The data directory, held by one process at a time.
struct Home {
    path: PathBuf,
    _lock: File,
}

impl Home {
    fn open(path: &Path) -> Result<Self, CliError> {
        Ok(Self {
            path: path.to_owned(),
            _lock: home::hold(path)?,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A database that is a cache begins empty.
    fn forget_database(&self) -> Result<(), CliError> {
        for end in ["", "-wal", "-shm"] {
            let file = self.file(&format!("{}{end}", home::DATABASE));
            match std::fs::remove_file(&file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(CliError::file(
                        "remove the database of the process before",
                        &file,
                        e,
                    ));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The token file. The first start makes a token for an admin, which the commands find without an option.
    fn admin_token(&self) -> Result<PathBuf, CliError> {
        let file = self.file(home::TOKENS);
        let plain = self.file(home::ADMIN_TOKEN);
        if !plain.exists() {
            let token = tokens::add(&file, "admin", Role::Admin, None)?;
            tokens::write_private(&plain, &format!("{token}\n"))?;
        }
        Ok(file)
    }

    /// The token of that admin.
    fn token(&self) -> Result<String, CliError> {
        let file = self.file(home::ADMIN_TOKEN);
        let text =
            std::fs::read_to_string(&file).map_err(|e| CliError::file("read the token in", &file, e))?;
        Ok(text.trim().to_owned())
    }

    /// The secrets of subscriptions have to outlive the process: the first start makes the keys from which they are derived.
    fn with_webhook_keys(&self, mut settings: Settings) -> Result<Settings, CliError> {
        if settings.webhooks.keys_file.is_none() {
            let file = self.file(home::WEBHOOK_KEYS);
            if !file.exists() {
                let mut secret = [0; 32];
                random(&mut secret);
                tokens::write_private(&file, &format!("standalone:{}\n", hex::encode(secret)))?;
            }
            settings.webhooks.keys_file = Some(file);
        }
        Ok(settings)
    }

    /// Removes the address, so that commands find no service. After a kill the file stays, and the free lock shows that the service is
    /// gone.
    fn forget_address(&self) {
        let file = self.file(API_FILE);
        if let Err(error) = std::fs::remove_file(&file) {
            tracing::warn!(file = %file.display(), %error, "cannot remove the file that says where the API listens");
        }
    }

    fn write_address(&self, url: &str) -> Result<(), CliError> {
        tokens::write_private(&self.file(API_FILE), &format!("{}\n", json!({ "url": url })))
    }
}
