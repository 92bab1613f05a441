//! What a fault of the client's means for the caller.

use lapin::ErrorKind;
use lapin::protocol::{AMQPErrorKind, AMQPHardError};
use lapin::types::ShortString;

use crate::BusError;

/// The broker says no to what was asked, and would again. Anything else may pass: the broker is away or in trouble.
fn is_refusal(error: &lapin::Error) -> bool {
    match error.kind() {
        ErrorKind::ProtocolError(fault) => matches!(
            fault.kind(),
            AMQPErrorKind::Soft(_) | AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED)
        ),
        _ => false,
    }
}

/// Whether the broker knows no such user, or another password: nothing that passes while it starts, as a virtual host that is not up yet.
pub(super) fn is_of_the_user(error: &BusError) -> bool {
    let BusError::Refused {
        source: Some(source), ..
    } = error
    else {
        return false;
    };
    let seen = source.downcast_ref::<lapin::Error>().map(lapin::Error::kind);
    matches!(seen, Some(ErrorKind::ProtocolError(fault)) if matches!(fault.kind(), AMQPErrorKind::Soft(_)))
}

/// What to look at where the broker does not let us in; `key` is the setting that holds the address.
pub(super) fn look_at(key: &str, error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(fault) if matches!(fault.kind(), AMQPErrorKind::Hard(_)) => {
            format!("the virtual host in {key}, and what the user may do there")
        }
        _ => format!("the user and the password in {key}"),
    }
}

pub(super) fn fault(address: &str, what: impl FnOnce() -> String, error: lapin::Error) -> BusError {
    if is_refusal(&error) {
        BusError::Refused {
            what: what(),
            source: Some(Box::new(error)),
        }
    } else {
        BusError::Unavailable {
            address: address.to_owned(),
            source: Some(Box::new(error)),
        }
    }
}

/// The broker cannot be used, for a reason that the client has no error for.
pub(super) fn unavailable(address: &str, why: &'static str) -> BusError {
    BusError::Unavailable {
        address: address.to_owned(),
        source: Some(why.into()),
    }
}

/// AMQP's short string; the client panics where one is too long.
pub(super) fn short(text: &str) -> Result<ShortString, BusError> {
    ShortString::try_new(text)
        .map_err(|error| BusError::Configuration(format!("{text:.40}... cannot be sent: {error}")))
}
