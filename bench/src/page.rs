//! The page with the results: a part for each case, which stays as it is until the case is measured again.

use std::collections::BTreeMap;

const HEAD: &str = "# Results\n\nWritten by `cargo xtask bench --write`; [README.md](README.md) says what is measured and how.\n";

/// The page with these parts in place of former ones, each under the name of its case, in the order of all cases.
pub fn renewed(before: &str, order: &[String], new: &BTreeMap<&str, String>) -> String {
    let mut page = HEAD.to_owned();
    for case in order {
        let part = new
            .get(case.as_str())
            .map(String::as_str)
            .or_else(|| part_of(before, case));
        if let Some(part) = part {
            page.push_str(&format!("\n## {case}\n\n{}\n", part.trim()));
        }
    }
    page
}

fn part_of<'a>(page: &'a str, case: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n## {case}\n"))?;
    Some(rest.split_once("\n## ").map_or(rest, |(part, _)| part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(before: &str, new: &[(&'static str, &str)]) -> String {
        let order = ["fence", "storm", "storm-watch"].map(str::to_owned);
        let new = new.iter().map(|(case, part)| (*case, (*part).to_owned()));
        renewed(before, &order, &new.collect())
    }

    #[test]
    fn what_was_not_measured_stays_and_each_case_has_its_place() {
        let first = page("", &[("storm", "a storm\n\n### Figures\n\nmany\n")]);
        let all = page(&first, &[("storm-watch", "a watch"), ("fence", "a fence")]);
        let parts = "\n## fence\n\na fence\n\n## storm\n\na storm\n\n### Figures\n\nmany\n\n## storm-watch\n\na watch\n";
        assert_eq!(all, format!("{HEAD}{parts}"));
        assert_eq!(page(&all, &[]), all);
        let again = page(&all, &[("storm-watch", "another watch")]);
        assert_eq!(again, all.replace("a watch", "another watch"));
    }
}
