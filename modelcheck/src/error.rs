//! What can be wrong with what is asked for.

/// Why nothing was searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelCheckError {
    /// There is no such configuration.
    #[error("there is no configuration {0:?}; --list names all")]
    Configuration(String),
    /// There is no such chance.
    #[error(
        "{0:?} is not KIND=NUMBER with a kind of thing that happens and 0 to 255; --list names the kinds"
    )]
    Chance(String),
    /// There is no such guard.
    #[error("there is no guard {0:?}; --guards names all")]
    Guard(String),
}
