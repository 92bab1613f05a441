//! The trace that a message belongs to, as W3C Trace Context writes it.

use std::fmt;

use ringfence_core::AttemptId;
use uuid::Uuid;

/// An operation is a trace and an attempt a span of it, so that log lines, messages and the API name one thing.
///
/// Shown as a `traceparent`: `00-{trace}-{span}-01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    id: Uuid,
    span: u64,
}

impl Trace {
    /// The span of an attempt in the trace of its operation.
    #[must_use]
    pub fn of(attempt: AttemptId) -> Self {
        Self {
            id: attempt.operation_id.0,
            span: u64::from(attempt.number),
        }
    }

    /// Another span of this trace, with an id that no other span has: the lower half of a random UUID is never 0, and never the number of
    /// an attempt.
    #[must_use]
    pub fn within(self, id: Uuid) -> Self {
        Self {
            id: self.id,
            span: lower_half(id),
        }
    }

    /// The trace of something that belongs to no operation; both ids are random.
    #[must_use]
    pub fn random(id: Uuid, span: Uuid) -> Self {
        Self {
            id,
            span: lower_half(span),
        }
    }

    /// Reads a `traceparent` of version 00; `None` for anything else.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || version != "00" || number(flags, 2).is_none() {
            return None;
        }
        let id = number(id, 32).filter(|id| *id != 0)?;
        let span = number(span, 16).filter(|span| *span != 0)?;
        Some(Self {
            id: Uuid::from_u128(id),
            span: u64::try_from(span).ok()?,
        })
    }

    /// The trace's id: 32 hexadecimal digits, those of the operation's id.
    #[must_use]
    pub fn id(&self) -> impl fmt::Display + use<> {
        self.id.simple()
    }

    /// The span's id: 16 hexadecimal digits.
    #[must_use]
    pub fn span_id(&self) -> impl fmt::Display + use<> {
        SpanId(self.span)
    }
}

struct SpanId(u64);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

fn lower_half(id: Uuid) -> u64 {
    id.as_u64_pair().1
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{:016x}-01", self.id.simple(), self.span)
    }
}

/// Lower-case hexadecimal of exactly that many digits.
fn number(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use ringfence_core::OperationId;

    use super::*;

    const ATTEMPT: AttemptId = AttemptId {
        operation_id: OperationId(Uuid::from_u128(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c)),
        number: 11,
    };

    #[test]
    fn an_attempt_is_a_span_of_its_operation() {
        let trace = Trace::of(ATTEMPT);
        assert_eq!(
            trace.to_string(),
            "00-0af7651916cd43dd8448eb211c80319c-000000000000000b-01"
        );
        assert_eq!(trace.id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(Trace::parse(&trace.to_string()), Some(trace));
    }

    #[test]
    fn what_an_attempt_leads_to_is_another_span_of_its_trace() {
        let within = Trace::of(ATTEMPT).within(Uuid::from_u128(0xffff_0123_4567_89ab_8def_0123_4567_89ab));
        assert_eq!(
            within.to_string(),
            "00-0af7651916cd43dd8448eb211c80319c-8def0123456789ab-01"
        );
        assert_eq!(within.span_id().to_string(), "8def0123456789ab");
        assert_eq!(Trace::of(ATTEMPT).span_id().to_string(), "000000000000000b");
    }

    #[test]
    fn what_is_no_traceparent_is_no_trace() {
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-000000000000000b",
            "00-0af7651916cd43dd8448eb211c80319c-000000000000000b-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-000000000000000b-01",
            "00-00000000000000000000000000000000-000000000000000b-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-000000000000000b-01",
            "00-+af7651916cd43dd8448eb211c80319c-000000000000000b-01",
            "00-0af7651916cd43dd8448eb211c80319c-00000000000000é-01",
        ] {
            assert_eq!(Trace::parse(text), None, "{text:?}");
        }
    }
}
