//! A PostgreSQL and a RabbitMQ of the campaign, which are restarted, and the connections to them.

use std::net::SocketAddr;
use std::sync::Arc;

use ringfence_lab::{LabError, PostgreSql, RabbitMq};
use ringfence_tests::Site;
use tokio::sync::Mutex;
use url::Url;

use crate::broker::Tap;
use crate::error::CampaignError;
use crate::process::Process;
use crate::proxy::Proxy;

/// Variables with the addresses of the database and the broker.
const DATABASE: &str = "RINGFENCE_DATABASE_URL";
const BROKER: &str = "RINGFENCE_BUS_URL";

/// A clock of the database that can be set for all connections or for one user.
const CLOCK: &str = "
    CREATE SCHEMA campaign;
    CREATE TABLE campaign.clock (who text PRIMARY KEY, off interval NOT NULL);
    CREATE FUNCTION campaign.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
        SELECT pg_catalog.clock_timestamp()
             + coalesce((SELECT sum(off) FROM campaign.clock WHERE who IN ('all', session_user)), interval '0')
    $$;";

/// Started peers on which no service is set up yet.
pub struct Started;

/// The peers.
pub struct Peers {
    pub postgres: Arc<Mutex<PostgreSql>>,
    pub rabbit: Arc<Mutex<RabbitMq>>,
    pub tap: Tap,
    database_url: String,
    broker_url: String,
}

impl Peers {
    /// Starts the peers.
    pub async fn start() -> Result<(Started, Site), CampaignError> {
        Ok((Started, Site::with_own_peers().await))
    }

    /// Gives a process connections of its own to the peers, and a database user of its own.
    pub async fn join(&self, process: &mut Process) -> Result<(), CampaignError> {
        if !process.name.starts_with("worker") {
            let user = process.name.replace('-', "_");
            self.sql(&format!("CREATE ROLE {user} SUPERUSER LOGIN PASSWORD 'campaign'"))
                .await?;
            let mut url = Url::parse(&self.database_url)?;
            let named = url
                .set_username(&user)
                .and_then(|()| url.set_password(Some("campaign")));
            debug_assert!(named.is_ok(), "the URL of a server has a user");
            let (url, way) = by_proxy(url).await?;
            process.set(DATABASE, url);
            process.database = Some(way);
        }
        let (url, way) = by_proxy(Url::parse(&self.broker_url)?).await?;
        process.set(BROKER, url);
        process.broker = Some(way);
        Ok(())
    }

    /// Sets the database's clock for all connections, or for one process.
    pub async fn set_clock(&self, who: &str, off_ms: i64) -> Result<(), CampaignError> {
        let who = who.replace('-', "_");
        let sql = format!(
            "INSERT INTO campaign.clock VALUES ('{who}', interval '{off_ms} milliseconds')
             ON CONFLICT (who) DO UPDATE SET off = excluded.off"
        );
        self.sql(&sql).await
    }

    async fn sql(&self, sql: &str) -> Result<(), CampaignError> {
        use sqlx::Connection;
        let mut connection = sqlx::PgConnection::connect(&self.database_url).await?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut connection)
            .await?;
        Ok(connection.close().await?)
    }

    /// Kills PostgreSQL, as a loss of power would, and starts it again.
    pub async fn restart_postgres(&self) -> Result<(), CampaignError> {
        let server = Arc::clone(&self.postgres).lock_owned().await;
        off_the_threads(move || {
            let mut server = server;
            server.crash()?;
            server.start_again()
        })
        .await
    }

    /// Stops RabbitMQ in order and starts it again: a single node that is killed while it stores its list of queues may never open them
    /// again.
    pub async fn restart_rabbit(&self) -> Result<(), CampaignError> {
        let node = Arc::clone(&self.rabbit).lock_owned().await;
        off_the_threads(move || {
            let mut node = node;
            node.stop();
            node.start_again()
        })
        .await
    }
}

impl Started {
    /// Completes the peers of a site that has a schema.
    pub async fn with(self, mut site: Site) -> Result<Peers, CampaignError> {
        let missing = |what: &'static str| CampaignError::Missing {
            what,
            package: "postgresql and rabbitmq-server",
        };
        let postgres = site.postgres.take().ok_or_else(|| missing("PostgreSQL"))?;
        let rabbit = site.rabbit.take().ok_or_else(|| missing("RabbitMQ"))?;
        let broker_url = rabbit.url();
        let rabbit = Arc::new(Mutex::new(rabbit));
        let peers = Peers {
            tap: Tap::on(&broker_url, &site.prefix, Arc::clone(&rabbit)),
            postgres: Arc::new(Mutex::new(postgres)),
            rabbit,
            database_url: site.database_url.clone(),
            broker_url,
        };
        peers.sql(CLOCK).await?;
        let name = Url::parse(&site.database_url)?
            .path()
            .trim_start_matches('/')
            .to_owned();
        peers
            .sql(&format!(
                "ALTER DATABASE {name} SET search_path = campaign, pg_catalog, public"
            ))
            .await?;
        Ok(peers)
    }
}

/// A URL that leads to its server through a proxy.
async fn by_proxy(mut url: Url) -> Result<(String, Proxy), CampaignError> {
    let target = url.port().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let proxy = Proxy::to(target).await?;
    let set = url.set_port(Some(proxy.address().port()));
    debug_assert!(set.is_ok(), "the URL of a server has a port");
    Ok((url.into(), proxy))
}

async fn off_the_threads(
    work: impl FnOnce() -> Result<(), LabError> + Send + 'static,
) -> Result<(), CampaignError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
