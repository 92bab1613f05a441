//! `ringfence method`.

/// `ringfence method ...`
#[derive(Debug, clap::Subcommand)]
pub enum MethodCommand {
    /// Lists them
    List,
}
