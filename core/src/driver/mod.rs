//! Drivers, as the rules, the API and the documentation know them: by a declaration, which the driver's own file makes.
//!
//! No driver is named here. A service hands the catalogue of those that it has to whatever checks a method or fills one in.

mod catalogue;
mod parameter;

pub use catalogue::Catalogue;
pub use parameter::{Allowed, Others, Parameter, Role, Secret};

use crate::{Parameters, Resource};

/// What a driver is, declared once.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name, as methods give it.
    pub name: &'static str,
    /// What it speaks to, in a few words.
    pub about: &'static str,
    /// What it can act on.
    pub resources: &'static [Resource],
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Its secrets.
    pub secrets: &'static [Secret],
    /// Set if it takes more parameters and secrets than these: a program of the worker's machine tells which, and a worker is asked when a
    /// method is made.
    pub others: Option<Others>,
    /// Set if it speaks to a service of a platform.
    pub place: Option<Place>,
    /// Seconds for which a command that was given up may still be carried out, where the method says nothing else. A slow controller was
    /// seen to act 6 s after its client had given up; a service with a queue of its own takes longer.
    pub lingers_s: u32,
    /// The key of the device behind these parameters, so that no device gets two commands at once; `None` where it takes many.
    pub device: fn(&Parameters) -> Option<String>,
    /// Whether what is read back with these parameters may count as a proof. A service that writes down that a host is cut off does not cut
    /// it off by that.
    pub can_prove: fn(&Parameters) -> bool,
}

/// The two parameters by which a host is found in its platform. Those that a method leaves out are the host's own.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The parameter that names the platform.
    pub platform: &'static str,
    /// The parameter that names the host there.
    pub host: &'static str,
    /// Whether one service answers for all hosts of the platform, so that it is heard where it is asked about one of them.
    pub answers_for_all: bool,
}

impl Declaration {
    /// Its parameter of this name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// What a parameter says of the device.
    pub(crate) fn role(&self, name: &str) -> Role {
        match (self.parameter(name), &self.others) {
            (Some(parameter), _) => parameter.role,
            (None, Some(others)) if (others.tells_apart)(name) => Role::TellsApart,
            (None, _) => Role::Manner,
        }
    }

    /// The parameters that tell devices apart, in words.
    pub(crate) fn telling(&self) -> String {
        let apart = self.parameters.iter().filter(|p| p.role == Role::TellsApart);
        let others = self.others.iter().map(|others| others.telling);
        apart
            .map(|p| p.name)
            .chain(others)
            .collect::<Vec<_>>()
            .join(" or ")
    }
}

/// The value of a parameter, unless it is empty.
#[must_use]
pub fn value_of<'a>(parameters: &'a Parameters, name: &str) -> Option<&'a str> {
    parameters
        .get(name)
        .map(String::as_str)
        .filter(|value| !value.is_empty())
}
