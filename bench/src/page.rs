//! The page with the results. Recoveries need a cloud and half an hour, so they have a part of their own; each part stays as it is until it
//! is measured again.

const HEAD: &str = "# Results\n\nWritten by `cargo xtask bench --write`; [README.md](README.md) says what is measured and how.\n\n";
const RECOVERIES: &str = "\n# Recoveries\n\nOf a host's servers, on a real Nova.\n\n";

/// The page with the new parts.
pub fn renewed(before: &str, results: Option<String>, recoveries: Option<String>) -> String {
    let before = before.strip_prefix(HEAD).unwrap_or(before);
    let (old_results, old_recoveries) = before.split_once(RECOVERIES).unwrap_or((before, ""));
    let results = results.unwrap_or_else(|| old_results.to_owned());
    let recoveries = recoveries.unwrap_or_else(|| old_recoveries.to_owned());
    format!(
        "{HEAD}{}\n{RECOVERIES}{}\n",
        results.trim_end(),
        recoveries.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::renewed;

    #[test]
    fn what_was_not_measured_stays() {
        let some = |text: &str| Some(text.to_owned());
        let first = renewed("", some("a fence\n"), None);
        let both = renewed(&first, None, some("a recovery\n"));
        let mut parts = both.split("\n# Recoveries\n");
        assert!(parts.next().unwrap().ends_with("\n\na fence\n"), "{both}");
        assert!(parts.next().unwrap().ends_with("\n\na recovery\n"), "{both}");
        assert_eq!(renewed(&both, None, None), both);
        let again = renewed(&both, some("another fence"), None);
        assert_eq!(again, both.replace("a fence", "another fence"));
    }
}
