//! The rules for names and reasons.

use crate::{Problem, Problems};

/// The longest name of a host, segment, method or plan, in characters (a host name in DNS has at most 255).
pub const MAX_NAME_CHARS: usize = 255;

/// The longest name of a zone, in characters: with what stands before it, it names queues of the broker, which have at most 255.
pub const MAX_ZONE_CHARS: usize = 128;

/// The longest reason, in characters (Nova takes 255 for its own).
pub const MAX_REASON_CHARS: usize = 255;

/// A name is 1 to 255 characters of letters, digits, `.`, `_`, `-` and begins with a letter or digit. It must not read as a
/// UUID, since one path segment of the API takes either.
pub fn validate_name(field: &str, name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_CHARS {
        return Err(Problem::new(
            field,
            format!("has {} characters; 1 to {MAX_NAME_CHARS} are allowed", name.len()),
        ));
    }
    if !name.chars().all(allowed) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(Problem::new(
            field,
            format!("is {name:?}; letters, digits, '.', '_' and '-' are allowed, a letter or digit first"),
        ));
    }
    if uuid::Uuid::parse_str(name).is_ok() {
        return Err(Problem::new(
            field,
            format!("is {name:?}, which reads as a UUID; a name must not"),
        ));
    }
    Ok(())
}

/// A zone has a name of at most 128 characters.
pub fn validate_zone(field: &str, zone: &str) -> Result<(), Problem> {
    if zone.len() > MAX_ZONE_CHARS {
        return Err(Problem::new(
            field,
            format!("has {} characters; 1 to {MAX_ZONE_CHARS} are allowed", zone.len()),
        ));
    }
    validate_name(field, zone)
}

/// A reason is 1 to 255 characters without control characters.
pub fn validate_reason(reason: &str) -> Result<(), Problems> {
    let chars = reason.chars().count();
    let mut problems = Problems::default();
    if reason.trim().is_empty() || chars > MAX_REASON_CHARS {
        problems.add(
            "reason",
            format!("has {chars} characters; 1 to {MAX_REASON_CHARS} are allowed, not all blank"),
        );
    } else if reason.chars().any(char::is_control) {
        problems.add("reason", "holds a control character; plain text is allowed");
    }
    problems.into_result()
}
