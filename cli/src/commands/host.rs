//! `ringfence host`.

/// `ringfence host ...`
#[derive(Debug, clap::Subcommand)]
pub enum HostCommand {
    /// Lists them
    List,
}
