//! The addresses from which the messages of a node's crash kernel come.

use std::net::IpAddr;

use ringfence_core::{Problems, ProofKind, SufficientSet, default_sufficient_sets, kdump_addresses};

use super::names::Scope;
use super::reading::Node;

/// The key of a configuration.
pub(super) const KEY: &str = "kdump";
/// The key that says whether a message proves that the host stands still.
pub(super) const SUFFICES: &str = "kdump_suffices";

/// What a configuration says of its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dumps {
    /// What was set through the API stays.
    #[default]
    Unsaid,
    /// The messages come from the addresses that the cluster knows of the node.
    OfNode,
    /// They come from these; from none, if there are none.
    From(Vec<IpAddr>),
}

impl Dumps {
    /// Reads the value of the key. `at` is where the key stands.
    pub fn read(given: Option<String>, scope: &Scope, at: &str, problems: &mut Problems) -> Self {
        let why = match given.as_deref() {
            None => return Self::Unsaid,
            Some("node") => return Self::OfNode,
            Some("none") => return Self::From(Vec::new()),
            Some(text) => match (kdump_addresses(text), scope) {
                (Ok(addresses), Scope::Node(_)) => return Self::From(addresses),
                (Ok(_), Scope::Type(_) | Scope::Default) => {
                    "gives addresses, and is for more than one node; node and none are allowed".to_owned()
                }
                (Err(why), _) => format!("{why}; so are node and none"),
            },
        };
        problems.add(format!("{at}: {KEY}"), why);
        Self::Unsaid
    }

    /// The addresses of a node; `None`: nothing is said of them.
    pub fn of(&self, node: &Node) -> Option<Vec<IpAddr>> {
        match self {
            Self::Unsaid => None,
            Self::OfNode => Some(node.addresses.clone()),
            Self::From(addresses) => Some(addresses.clone()),
        }
    }
}

/// What suffices for FENCED: the default, and a message of the crash kernel where the configuration says so. `at` is where the key stands.
pub(super) fn sufficient_sets(
    given: Option<String>,
    dumps: &Dumps,
    at: &str,
    problems: &mut Problems,
) -> Vec<SufficientSet> {
    let mut sets = default_sufficient_sets();
    match given.as_deref() {
        None | Some("false") => {}
        Some("true") if *dumps == Dumps::From(Vec::new()) => {
            problems.add(
                format!("{at}: {SUFFICES}"),
                format!("is true, and {KEY} is none; false is allowed"),
            );
        }
        Some("true") => sets.push([ProofKind::Kdump].into()),
        Some(other) => problems.add(
            format!("{at}: {SUFFICES}"),
            format!("is {other:?}; true and false are allowed"),
        ),
    }
    sets
}
