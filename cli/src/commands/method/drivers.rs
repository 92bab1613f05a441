//! The drivers that methods may name.

use super::super::session::Session;
use crate::client::Request;
use crate::client::view::{Driver, DriverList};
use crate::error::CliError;
use crate::output::{Cell, Table};

/// `ringfence method drivers`
pub async fn list(name: Option<String>, session: &mut Session) -> Result<(), CliError> {
    let request = Request::get(&["drivers"]);
    session
        .show::<DriverList>(request, |screen, list| {
            let Some(name) = name else {
                return screen.table(all(&list.drivers));
            };
            let known = list.drivers.iter().find(|driver| driver.name == name);
            let driver = known.ok_or_else(|| {
                let names: Vec<_> = list.drivers.iter().map(|driver| driver.name.as_str()).collect();
                CliError::Usage(format!("{name:?} is no driver; {} is allowed", names.join(", ")))
            })?;
            screen.table(one(driver))
        })
        .await
}

fn all(drivers: &[Driver]) -> Table {
    let mut table = Table::new(&["DRIVER", "ACTS ON", "WHAT IT IS"]);
    for driver in drivers {
        table.row([
            driver.name.as_str().into(),
            driver.resources.join(", ").into(),
            driver.about.as_str().into(),
        ]);
    }
    table
}

fn one(driver: &Driver) -> Table {
    let mut table = Table::new(&["PARAMETER", "NEEDED", "DEFAULT", "WHAT IT IS"]);
    let needed = |required: bool| Cell::from(if required { "yes" } else { "no" });
    for parameter in &driver.parameters {
        table.row([
            parameter.name.as_str().into(),
            needed(parameter.required),
            Cell::maybe(parameter.default.as_deref()),
            match &parameter.allowed {
                Some(allowed) => format!("{}; {allowed}", parameter.about).into(),
                None => parameter.about.as_str().into(),
            },
        ]);
    }
    if let Some(others) = &driver.other_parameters {
        table.row(["others".into(), needed(false), "-".into(), others.as_str().into()]);
    }
    for secret in &driver.secrets {
        table.row([
            format!("secret {}", secret.name).into(),
            needed(secret.required),
            "-".into(),
            "env:NAME, file:/absolute/path or secret:CLUSTER/SECRET/KEY".into(),
        ]);
    }
    table
}
