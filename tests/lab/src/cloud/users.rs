//! The users of the cloud.

/// A user with a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// `admin` in the project `admin`, with the role `admin`.
    Admin,
    /// `fencing` in the project `service`, with the roles `admin` and `service`.
    Fencing,
    /// `fencing-reader` in the project `service`, with the role `reader`.
    FencingReader,
    /// `demo` in the project `demo`, with the role `member`.
    Demo,
}

impl User {
    /// The name to sign in with; the password of every user is [`OPENSTACK_PASSWORD`](crate::OPENSTACK_PASSWORD).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Fencing => "fencing",
            Self::FencingReader => "fencing-reader",
            Self::Demo => "demo",
        }
    }

    /// The project to sign in to. User and project are in the domain `Default`.
    #[must_use]
    pub fn project(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Fencing | Self::FencingReader => "service",
            Self::Demo => "demo",
        }
    }
}
