//! Which form of messages a receiver understands.

use ringfence_core::{MessageFormat, Problems};
use url::Url;

/// The form that the receiver is known to take by its address.
fn known_format(url: &str) -> Option<(String, MessageFormat)> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some((host.to_owned(), MessageFormat::of_receiver(host)?))
}

/// The form that was given, else the one that the receiver is known to take.
pub(crate) fn format_of(url: &str, given: Option<MessageFormat>) -> MessageFormat {
    let known = || known_format(url).map(|(_, format)| format);
    given.or_else(known).unwrap_or_default()
}

/// What a receiver will not understand is refused before the first event is lost on it.
pub(crate) fn check_format(url: &str, given: Option<MessageFormat>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let (Some(given), Some((host, takes))) = (given, known_format(url))
        && given != takes
    {
        problems.add(
            "format",
            format!("is {given}, and {host} understands {takes} alone; {takes} is allowed, or leave it out"),
        );
    }
    problems.into_result()
}
