//! Metrics, parsed as Prometheus parses them.

use std::collections::BTreeSet;

use crate::Client;

/// The metrics of one process at one moment.
#[derive(Clone, Debug)]
pub struct Numbers(String);

impl Numbers {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        assert!(text.ends_with("# EOF\n"), "{text}");
        Self(text)
    }

    /// The metrics that an API serves at `/metrics`.
    pub async fn of(client: &Client) -> Self {
        let answer = client.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        Self::new(answer.body.as_str().unwrap())
    }

    /// The sum of all series of this name that carry these labels, each `key="value"`; 0 if there is none.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        self.series(name, labels).sum()
    }

    /// Whether there is a series of this name.
    pub fn has(&self, name: &str) -> bool {
        self.series(name, &[]).next().is_some()
    }

    fn series(&self, name: &str, labels: &[&str]) -> impl Iterator<Item = f64> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(move |line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (this, its) = series.split_once('{').unwrap_or((series, ""));
            let is_it = this == name && labels.iter().all(|label| its.contains(label));
            is_it.then(|| value.parse().unwrap())
        })
    }

    /// The names of all series.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for line in self.0.lines() {
            let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let endings: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                "info" => &["_info"],
                _ => &[""],
            };
            names.extend(endings.iter().map(|ending| format!("{name}{ending}")));
        }
        names
    }
}
