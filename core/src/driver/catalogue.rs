//! All drivers that a service knows.

use std::collections::BTreeMap;

use super::Declaration;
use crate::{Method, Problem};

/// The declarations of drivers by their names.
#[derive(Clone, Debug, Default)]
pub struct Catalogue(BTreeMap<&'static str, &'static Declaration>);

impl FromIterator<&'static Declaration> for Catalogue {
    fn from_iter<I: IntoIterator<Item = &'static Declaration>>(declarations: I) -> Self {
        let by_name = declarations.into_iter().map(|declared| (declared.name, declared));
        Self(by_name.collect())
    }
}

impl Catalogue {
    /// All declarations, by name.
    pub fn all(&self) -> impl Iterator<Item = &'static Declaration> + use<'_> {
        self.0.values().copied()
    }

    /// The declaration of the driver of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static Declaration> {
        self.0.get(name).copied()
    }

    /// The declaration of a method's driver.
    ///
    /// # Errors
    /// No driver has this name.
    pub fn of(&self, method: &Method) -> Result<&'static Declaration, Problem> {
        self.get(&method.driver).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().copied().collect();
            let shown: String = method.driver.chars().take(64).collect();
            Problem::new("driver", format!("is {shown:?}; allowed: {}", known.join(", ")))
        })
    }

    /// Whether what is read back with a method may count as a proof. A driver that is not known proves nothing.
    pub(crate) fn can_prove(&self, method: &Method) -> bool {
        self.get(&method.driver)
            .is_some_and(|declared| (declared.can_prove)(&method.parameters))
    }
}
