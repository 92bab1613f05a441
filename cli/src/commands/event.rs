//! `ringfence event`.

/// `ringfence event ...`
#[derive(Debug, clap::Subcommand)]
pub enum EventCommand {
    /// Lists them
    List,
}
