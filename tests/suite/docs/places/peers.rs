//! A database and a broker that belong to one place, and the commands of their administrator.

use std::net::UdpSocket;

use ringfence_lab::{PostgreSql, RabbitMq};
use ringfence_tests::{Machine, Site};
use sqlx::Connection;
use url::Url;

use super::script;

pub struct OwnPeers {
    pub postgres: PostgreSql,
    pub rabbit: RabbitMq,
}

impl OwnPeers {
    pub async fn start() -> Self {
        let started = tokio::task::spawn_blocking(|| Self {
            postgres: PostgreSql::start().unwrap(),
            rabbit: RabbitMq::start().unwrap(),
        });
        started.await.unwrap()
    }

    /// A database and queues of this place.
    pub async fn site(&self) -> Site {
        Site::on(&self.postgres.url("postgres"), self.rabbit.url()).await
    }

    /// Changes the peers to the state after the installation of Debian's packages: the administrator is `postgres`, and no role is
    /// named `ringfence`.
    pub async fn as_installed(&self) -> String {
        let url = self.postgres.url("postgres");
        statement(&url, "CREATE ROLE postgres SUPERUSER LOGIN PASSWORD 'postgres'").await;
        let port = self.postgres.port();
        let admin = format!("postgres://postgres:postgres@127.0.0.1:{port}/postgres");
        statement(&admin, "ALTER ROLE ringfence RENAME TO lab").await;
        let (program, environment) = self.rabbit.control();
        let mut forget = tokio::process::Command::new(program);
        forget.args(["delete_user", "ringfence"]).envs(environment);
        assert!(forget.output().await.unwrap().status.success());
        admin
    }

    /// Installs `rabbitmqctl`, and a `runuser -u postgres` that needs no such user here.
    pub fn give_commands(&self, machine: &Machine, admin_url: &str) {
        let url = Url::parse(admin_url).unwrap();
        let variables = format!(
            "export PGHOST=127.0.0.1 PGPORT={} PGUSER={} PGPASSWORD={} PGDATABASE=postgres\n",
            self.postgres.port(),
            url.username(),
            url.password().unwrap_or_default(),
        );
        let only = "[ \"$1 $2 $3\" = '-u postgres --' ] || { echo \"runuser $*: not supported here\"; exit 1; }\nshift 3\n";
        script(
            machine,
            "runuser",
            &format!("{only}{variables}cd /\nexec \"$@\"\n"),
        );
        let (program, environment) = self.rabbit.control();
        let exports: String = environment
            .iter()
            .map(|(name, value)| format!("export {name}='{value}'\n"))
            .collect();
        script(
            machine,
            "rabbitmqctl",
            &format!("{exports}exec '{}' \"$@\"\n", program.display()),
        );
    }
}

async fn statement(url: &str, sql: &'static str) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A UDP port that was free a moment ago.
pub fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}
