//! Finds operations by the beginning of their ids, or by their hosts.

use serde_json::Value;
use uuid::Uuid;

use super::session::{Session, views};
use crate::client::Request;
use crate::client::view::Operation;
use crate::error::CliError;

/// The digits of a UUID, without dashes.
const UUID_DIGITS: usize = 32;
/// How many candidates are listed where a beginning fits several.
const LISTED: usize = 10;

/// The id of the only operation whose id begins with `text`.
pub async fn whole(session: &Session, text: &str) -> Result<String, CliError> {
    if Uuid::parse_str(text).is_ok() {
        return Ok(text.to_owned());
    }
    beginning_with(session, text).await?.ok_or_else(|| none(text))
}

/// The id of the only operation whose id begins with `text`; if there is none, the live or last operation of the host of this name.
pub async fn of_id_or_host(session: &Session, text: &str) -> Result<String, CliError> {
    if let Some(id) = beginning_with(session, text).await? {
        return Ok(id);
    }
    let request = Request::get(&["operations"])
        .with("host", Some(text))
        .with("limit", Some(1));
    let list: Value = match session.client.send(request).await {
        Ok(answer) => answer.body,
        Err(CliError::Api(fault)) if fault.is_not_found() => return Err(none(text)),
        Err(error) => return Err(error),
    };
    let newest = views::<Operation>(&list, "operations")?.into_iter().next();
    newest
        .map(|operation| operation.id)
        .ok_or_else(|| CliError::Missing(format!("host {text} has had no operation yet")))
}

async fn beginning_with(session: &Session, text: &str) -> Result<Option<String>, CliError> {
    if Uuid::parse_str(text).is_ok() {
        return exact(session, text).await;
    }
    if !may_begin_an_id(text) {
        return Ok(None);
    }
    let (low, high) = (filled(text, '0'), filled(text, 'f'));
    let request = Request::get(&["operations"])
        .with("id", low.map(|id| format!("gte:{id}")))
        .with("id", high.map(|id| format!("lte:{id}")))
        .with("limit", Some(LISTED));
    let list = session.client.send(request).await?.body;
    let found = views::<Operation>(&list, "operations")?;
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.id.clone())),
        several => Err(ambiguous(text, several)),
    }
}

/// The operation with this whole id; the id may also be that of a host.
async fn exact(session: &Session, id: &str) -> Result<Option<String>, CliError> {
    match session.client.send(Request::get(&["operations", id])).await {
        Ok(_) => Ok(Some(id.to_owned())),
        Err(CliError::Api(fault)) if fault.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first or the last id that begins with `text`.
fn filled(text: &str, with: char) -> Option<Uuid> {
    let digits = text.chars().filter(|c| *c != '-');
    let whole: String = digits.chain(std::iter::repeat(with)).take(UUID_DIGITS).collect();
    Uuid::parse_str(&whole).ok()
}

/// Whether the text has only hexadecimal digits and the dashes of a UUID.
fn may_begin_an_id(text: &str) -> bool {
    let fits = |(at, c): (usize, char)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    };
    !text.is_empty() && text.len() <= 36 && text.chars().enumerate().all(fits)
}

fn none(text: &str) -> CliError {
    CliError::Missing(format!(
        "there is no operation whose id begins with {text:?}; ringfence operation list has them"
    ))
}

fn ambiguous(text: &str, candidates: &[Operation]) -> CliError {
    let line = |operation: &Operation| {
        format!(
            "\n  {}  {}: {} {}",
            operation.id,
            operation.host_name(),
            operation.kind,
            operation.status
        )
    };
    let lines: String = candidates.iter().map(line).collect();
    let more = if candidates.len() == LISTED {
        "\n  and perhaps more"
    } else {
        ""
    };
    CliError::Usage(format!(
        "the ids of several operations begin with {text:?}; write more of it:{lines}{more}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_an_id_is_asked_for_as_one() {
        for text in [
            "0",
            "0f8fad5b",
            "0f8fad5b-",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
        ] {
            assert!(may_begin_an_id(text), "{text}");
        }
        for text in [
            "",
            "compute1",
            "0f8fad5bd",
            "-",
            "0f8fad5b-d9cb-469f-a165-70867728950e0",
        ] {
            assert!(!may_begin_an_id(text), "{text}");
        }
    }
}
