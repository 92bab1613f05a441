//! Tickets: each stands for a token, signs in once, and ends with the process.

use std::collections::HashMap;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::tokens::hash_token;

/// The tickets that were not used yet, by the digest of what is shown.
#[derive(Default)]
pub(crate) struct Tickets(Mutex<HashMap<String, String>>);

impl Tickets {
    /// A ticket for this token.
    pub fn issue(&self, token: &str) -> String {
        let ticket = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        self.0.lock().insert(hash_token(&ticket), token.to_owned());
        ticket
    }

    /// The token that a ticket stands for, once.
    pub fn redeem(&self, ticket: &str) -> Option<String> {
        self.0.lock().remove(&hash_token(ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_signs_in_once() {
        let tickets = Tickets::default();
        let ticket = tickets.issue("rf_token");
        assert_eq!(tickets.redeem("another"), None);
        assert_eq!(tickets.redeem(&ticket).as_deref(), Some("rf_token"));
        assert_eq!(tickets.redeem(&ticket), None);
    }
}
