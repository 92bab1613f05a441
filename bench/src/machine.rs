//! The description of the machine and the software of a run.

use std::process::Command;

use ringfence_tests::Ground;
use ringfence_tests::Site;
use sqlx::{Connection, PgConnection};

use crate::clock::now;
use crate::error::BenchError;

/// The description as a Markdown list.
pub async fn describe(words: &[String]) -> Result<String, BenchError> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = file("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, model)| model);
    let memory = file("/proc/meminfo");
    let memory = memory.lines().next().unwrap_or_default().replace("MemTotal:", "");
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Ok(format!(
        "- {} UTC, `cargo xtask bench {}`\n- {cores} cores, {model}, {} of memory, Linux {}\n\
         - load average at the end (1, 5 and 15 minutes; the figures' own load included): {}\n\
         - PostgreSQL {}, RabbitMQ {}, {}\n",
        now().format("%Y-%m-%d %H:%M"),
        words.join(" "),
        memory.trim(),
        file("/proc/sys/kernel/osrelease").trim(),
        file("/proc/loadavg")
            .split(' ')
            .take(3)
            .collect::<Vec<_>>()
            .join(", "),
        postgresql().await?,
        rabbitmq(),
        rustc(),
    ))
}

async fn postgresql() -> Result<String, BenchError> {
    let site = Site::new(Ground::Distributed).await;
    let mut connection = PgConnection::connect(&site.database_url).await?;
    let version: String = sqlx::query_scalar("SHOW server_version")
        .fetch_one(&mut connection)
        .await?;
    Ok(version)
}

/// The folder with RabbitMQ's libraries has the version in its name.
fn rabbitmq() -> String {
    let Some(folder) = ringfence_lab::rabbitmq_folder() else {
        return "unknown".to_owned();
    };
    let entries = std::fs::read_dir(folder.join("../lib")).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .find_map(|name| Some(name.strip_prefix("rabbitmq_server-")?.to_owned()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(
        |_| "rustc unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
