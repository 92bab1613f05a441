//! `ringfence plan`.

/// `ringfence plan ...`
#[derive(Debug, clap::Subcommand)]
pub enum PlanCommand {
    /// Lists them
    List,
}
