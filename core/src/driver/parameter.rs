//! The parameters and secrets of a driver.

/// A parameter of a driver.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// Whether a method has to give it.
    pub is_required: bool,
    /// Whether each host may give it for itself instead.
    pub may_come_from_host: bool,
    /// What it says of the device.
    pub role: Role,
    /// Its value where a method gives none.
    pub default: Option<&'static str>,
    /// Which values are allowed; any if absent.
    pub allowed: Option<Allowed>,
}

/// What a parameter says of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// How the device is spoken to. It says nothing of the device.
    Manner,
    /// Where the device is to be found. Several devices have it in common.
    Place,
    /// Which device it is.
    TellsApart,
}

/// Which values are allowed.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// In words, as the end of a sentence: `true or false is allowed`.
    pub words: &'static str,
    /// Whether a value is one of them.
    pub test: fn(&str) -> bool,
}

impl Allowed {
    /// true or false.
    pub const FLAG: Self = Self {
        words: "true or false is allowed",
        test: |value| matches!(value, "true" | "false"),
    };
}

impl Parameter {
    /// One that a method has to give.
    #[must_use]
    pub const fn required(name: &'static str, about: &'static str) -> Self {
        Self {
            is_required: true,
            ..Self::optional(name, about)
        }
    }

    /// One that a method may leave out.
    #[must_use]
    pub const fn optional(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            is_required: false,
            may_come_from_host: false,
            role: Role::Manner,
            default: None,
            allowed: None,
        }
    }

    /// A method may leave it to its hosts.
    #[must_use]
    pub const fn or_of_host(self) -> Self {
        Self {
            may_come_from_host: true,
            ..self
        }
    }

    /// It tells devices apart.
    #[must_use]
    pub const fn tells_apart(self) -> Self {
        Self {
            role: Role::TellsApart,
            ..self
        }
    }

    /// It says where the device is to be found.
    #[must_use]
    pub const fn says_where(self) -> Self {
        Self {
            role: Role::Place,
            ..self
        }
    }

    /// What it is where a method gives nothing.
    #[must_use]
    pub const fn by_default(self, value: &'static str) -> Self {
        Self {
            default: Some(value),
            ..self
        }
    }

    /// It is true or false.
    #[must_use]
    pub const fn flag(self) -> Self {
        Self {
            allowed: Some(Allowed::FLAG),
            ..self
        }
    }

    /// Only values that pass the test are allowed; `words` say which these are.
    #[must_use]
    pub const fn allowing(self, words: &'static str, test: fn(&str) -> bool) -> Self {
        Self {
            allowed: Some(Allowed { words, test }),
            ..self
        }
    }
}

/// A secret of a driver.
#[derive(Clone, Copy, Debug)]
pub struct Secret {
    /// Its name.
    pub name: &'static str,
    /// Whether a method has to give it.
    pub is_required: bool,
}

/// Parameters that a driver does not know by itself.
#[derive(Clone, Copy, Debug)]
pub struct Others {
    /// What they are, and where they are written down, in a few words.
    pub about: &'static str,
    /// Why a value of a parameter is refused.
    pub refusal: fn(name: &str, value: &str) -> Option<&'static str>,
    /// Whether devices differ by the parameter of this name.
    pub tells_apart: fn(&str) -> bool,
    /// Those that tell devices apart, in words.
    pub telling: &'static str,
    /// The newest name of a parameter that has several.
    pub newest_name: fn(&str) -> &str,
}
