//! The device alone: a BMC, asked as Ringfence asks it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use ringfence_lab::IpmiBmc;
use tokio::process::Command;

use crate::error::BenchError;

const IPMITOOL: &str = "/usr/bin/ipmitool";
/// Between two readings, as Ringfence pauses.
const PAUSE: Duration = Duration::from_secs(1);
const READINGS: usize = 20;

/// Switches a host off, and returns the seconds until the BMC showed it as off.
pub async fn switch_off(port: u16) -> Result<f64, BenchError> {
    let begun = Instant::now();
    power(port, "off").await?;
    for _ in 0..READINGS {
        if power(port, "status").await?.trim() == "Chassis Power is off" {
            return Ok(begun.elapsed().as_secs_f64());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(BenchError::Late {
        what: "the BMC's word that the power is off".to_owned(),
        seconds: begun.elapsed().as_secs(),
    })
}

async fn power(port: u16, command: &str) -> Result<String, BenchError> {
    let port = port.to_string();
    let address = ["-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", &port];
    let output = Command::new(IPMITOOL)
        .args(address)
        .args([
            "-U",
            IpmiBmc::USER,
            "-L",
            "ADMINISTRATOR",
            "-N",
            "1",
            "-R",
            "2",
            "-E",
        ])
        .args(["chassis", "power", command])
        .env("IPMI_PASSWORD", IpmiBmc::PASSWORD)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(BenchError::system(format!("run {IPMITOOL}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(BenchError::Unexpected {
        what: format!("how ipmitool {command} ended"),
        found: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
