//! Wrong configuration is refused, and the refusal names the problem, its place, and what is allowed.

mod drivers;
mod hosts;
mod names;
mod plans;
mod resolving;

use ringfence_core::Problems;

/// The problems as "field: detail".
fn faults(result: Result<(), Problems>) -> Vec<String> {
    let problems = result.err().unwrap_or_default();
    problems.0.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn expect_fault(result: Result<(), Problems>, field: &str, words: &[&str]) {
    let faults = faults(result);
    let is_it = |fault: &&String| {
        fault.starts_with(&format!("{field}: ")) && words.iter().all(|word| fault.contains(word))
    };
    assert_eq!(faults.iter().filter(is_it).count(), 1, "{faults:#?}");
}
