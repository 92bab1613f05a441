//! The versions of Masakari's API that Ringfence stands in for.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;

use super::fault::{Fault, VERSION_HEADER};

const SERVICE_TYPES: [&str; 2] = ["instance-ha", "masakari"];
/// From 1.0 to 1.2, all of which take notifications in one way.
const MAX_MINOR: u32 = 2;

/// Refuses a version that Masakari would refuse. Absent: 1.0, which is what its monitors say.
pub(super) fn check(request: &HttpRequest) -> Result<(), Fault> {
    for header in request.headers().get_all(VERSION_HEADER) {
        for part in header.to_str().unwrap_or_default().split(',') {
            if let Some((service, version)) = part.trim().split_once(' ')
                && SERVICE_TYPES.contains(&service)
            {
                check_one(version.trim())?;
            }
        }
    }
    Ok(())
}

fn check_one(version: &str) -> Result<(), Fault> {
    let malformed = || {
        Fault::bad(format!(
            "API Version String {version} is of invalid format. Must be of format MajorNum.MinorNum."
        ))
    };
    if version == "latest" {
        return Ok(());
    }
    let (major, minor) = version.split_once('.').ok_or_else(malformed)?;
    let major: u32 = major.parse().map_err(|_| malformed())?;
    let minor: u32 = minor.parse().map_err(|_| malformed())?;
    if major == 1 && minor <= MAX_MINOR {
        return Ok(());
    }
    Err(Fault::of(
        StatusCode::NOT_ACCEPTABLE,
        format!(
            "Version {version} is not supported by the API. Minimum is 1.0 and maximum is 1.{MAX_MINOR}."
        ),
    ))
}
