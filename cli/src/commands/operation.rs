//! `ringfence operation`.

/// `ringfence operation ...`
#[derive(Debug, clap::Subcommand)]
pub enum OperationCommand {
    /// Lists them
    List,
}
