//! Names of hosts, as findings tell them.

/// How many hosts one finding names.
pub(super) const NAMED: usize = 5;

/// The names, or the first names and how many more there are.
pub(super) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
