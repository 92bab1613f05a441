//! Which version of an API is spoken: the newest that we want, as far as the service has it.

use osauth::services::ServiceType;
use osauth::{ApiVersion, Error, ErrorKind, Session};

/// The versions with which a call means what we think that it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// Before it the call does not exist, or asks for other things.
    pub needs: ApiVersion,
    /// From the next one on it means something else, or nobody has tried it.
    pub wants: ApiVersion,
}

/// The value of the header `OpenStack-API-Version`: what we want, or the newest that the service has, if that is enough.
///
/// What a service has is read once for each session.
pub(super) async fn header<S>(session: &Session, service: S, range: Range) -> Result<String, Error>
where
    S: ServiceType + Copy + Send,
{
    let has = session.get_api_versions(service).await?;
    let version = pick(has, range).map_err(|why| Error::new(ErrorKind::IncompatibleApiVersion, why))?;
    Ok(format!("{} {version}", service.catalog_type()))
}

pub(super) fn pick(has: Option<(ApiVersion, ApiVersion)>, range: Range) -> Result<ApiVersion, String> {
    let Range { needs, wants } = range;
    let Some((oldest, newest)) = has else {
        return Err(format!(
            "its version document names no versions of the API, and {needs} to {wants} can be used"
        ));
    };
    let version = wants.min(newest);
    if version < needs || version < oldest {
        return Err(format!(
            "it has versions {oldest} to {newest} of its API, and {needs} to {wants} can be used"
        ));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range {
        needs: ApiVersion(2, 68),
        wants: ApiVersion(2, 94),
    };

    fn with(oldest: u16, newest: u16) -> Result<ApiVersion, String> {
        pick(Some((ApiVersion(2, oldest), ApiVersion(2, newest))), RANGE)
    }

    #[test]
    fn the_newest_is_taken_that_both_have() {
        assert_eq!(with(1, 100), Ok(ApiVersion(2, 94)));
        assert_eq!(with(1, 93), Ok(ApiVersion(2, 93)));
        assert_eq!(with(1, 68), Ok(ApiVersion(2, 68)));
        assert_eq!(with(94, 120), Ok(ApiVersion(2, 94)));
    }

    #[test]
    fn what_is_too_old_or_too_new_is_told_with_both_sides() {
        for (oldest, newest) in [(1, 67), (95, 120)] {
            let why = with(oldest, newest).unwrap_err();
            assert!(
                why.contains(&format!("2.{oldest} to 2.{newest}")) && why.contains("2.68 to 2.94"),
                "{why}"
            );
        }
        assert!(pick(None, RANGE).unwrap_err().contains("2.68 to 2.94"));
    }
}
