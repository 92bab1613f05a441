//! The figures of a run: a JSON line each for programs, a table for people.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use comfy_table::{CellAlignment, presets};
use ringfence_tests::{Ground, tell};
use serde::Serialize;

use crate::error::BenchError;
use crate::statistics::Summary;

/// The target of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// The wanted value, in words.
    pub wanted: String,
    /// The found value, in words and numbers.
    pub found: String,
    pub met: bool,
}

impl Target {
    /// Met by `found` if it is at most `most`.
    pub fn at_most(what: &str, found: f64, most: f64, unit: &str) -> Self {
        Self {
            wanted: format!("{what} at most {most} {unit}").trim_end().to_owned(),
            found: format!("{found:.2} {unit}").trim_end().to_owned(),
            met: found <= most,
        }
    }

    /// Met by `found` if it is at least `least`.
    pub fn at_least(what: &str, found: f64, least: f64, unit: &str) -> Self {
        Self {
            wanted: format!("{what} at least {least} {unit}").trim_end().to_owned(),
            found: format!("{found:.2} {unit}").trim_end().to_owned(),
            met: found >= least,
        }
    }
}

/// One figure, or one floor.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub case: &'static str,
    /// The ground of the measurement; empty where it makes no difference.
    pub ground: &'static str,
    pub what: String,
    pub unit: &'static str,
    #[serde(flatten)]
    pub summary: Summary,
    /// The floor of the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// The median, divided by the floor's median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Figure {
    pub fn new(case: &'static str, what: impl Into<String>, unit: &'static str, summary: Summary) -> Self {
        Self {
            case,
            ground: "",
            what: what.into(),
            unit,
            summary,
            floor: None,
            ratio: None,
            target: None,
            note: None,
        }
    }

    pub fn on(mut self, ground: Ground) -> Self {
        self.ground = ground_name(ground);
        self
    }

    /// Compares the figure with a floor in an equal unit.
    pub fn over(mut self, floor: &str, median: f64) -> Self {
        self.floor = Some(format!("{floor}: {median:.2} {}", self.unit));
        self.ratio = Some(self.summary.median / median);
        self
    }

    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The name of a ground in reports.
pub fn ground_name(ground: Ground) -> &'static str {
    match ground {
        Ground::Standalone => "standalone",
        Ground::Distributed => "postgresql+rabbitmq",
    }
}

/// All figures of a run.
#[derive(Default)]
pub struct Report {
    figures: Vec<Figure>,
    /// What was not measured: the case, and why.
    skipped: Vec<(&'static str, String)>,
}

impl Report {
    /// Adds a figure and prints its line at once, so that a run that is ended early has printed what it knew.
    pub fn add(&mut self, figure: Figure) -> Result<(), BenchError> {
        let line = serde_json::to_string(&figure).unwrap_or_default();
        writeln!(std::io::stdout(), "{line}").map_err(BenchError::system("print a figure"))?;
        self.figures.push(figure);
        Ok(())
    }

    /// Adds a figure if there are measurements.
    pub fn add_summary(
        &mut self,
        measurements: &[f64],
        figure: impl FnOnce(Summary) -> Figure,
    ) -> Result<(), BenchError> {
        match Summary::of(measurements) {
            Some(summary) => self.add(figure(summary)),
            None => Ok(()),
        }
    }

    /// Notes why something was not measured.
    pub fn skip(&mut self, case: &'static str, why: impl Into<String>) {
        let why = why.into();
        tell(&format!("skipped: {case}: {why}"));
        self.skipped.push((case, why));
    }

    /// The report on each case that was measured.
    pub fn by_case(self) -> BTreeMap<&'static str, Self> {
        let mut reports: BTreeMap<_, Self> = BTreeMap::new();
        for figure in self.figures {
            reports.entry(figure.case).or_default().figures.push(figure);
        }
        for (case, why) in self.skipped {
            if let Some(report) = reports.get_mut(case) {
                report.skipped.push((case, why));
            }
        }
        reports
    }

    fn targets(&self) -> impl Iterator<Item = (&Figure, &Target)> {
        self.figures
            .iter()
            .filter_map(|figure| Some((figure, figure.target.as_ref()?)))
    }

    /// The tables for a terminal.
    pub fn text(&self) -> String {
        let tables = [
            self.figures_table(presets::NOTHING),
            self.targets_table(presets::NOTHING),
        ];
        tables.join("\n\n")
    }

    /// The tables for a page.
    pub fn markdown(&self) -> String {
        let (figures, targets) = (
            self.figures_table(presets::ASCII_MARKDOWN),
            self.targets_table(presets::ASCII_MARKDOWN),
        );
        let mut notes: Vec<_> = self
            .figures
            .iter()
            .filter_map(|figure| {
                Some(format!(
                    "- {}, {}: {}",
                    figure.case,
                    figure.what,
                    figure.note.as_ref()?
                ))
            })
            .chain(self.skipped.iter().map(|(_, why)| format!("- Skipped: {why}")))
            .collect();
        // Both grounds have most notes.
        let mut told = BTreeSet::new();
        notes.retain(|note| told.insert(note.clone()));
        format!(
            "### Targets\n\n{targets}\n\n### Figures\n\n{figures}\n\n{}\n",
            notes.join("\n")
        )
    }

    fn figures_table(&self, style: comfy_table::TableStyle) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(style).set_header([
            "case", "ground", "what", "unit", "n", "min", "median", "p95", "p99", "floor", "ratio",
        ]);
        for figure in &self.figures {
            let s = &figure.summary;
            table.add_row([
                figure.case.to_owned(),
                figure.ground.to_owned(),
                figure.what.clone(),
                figure.unit.to_owned(),
                s.samples.to_string(),
                number(s.min),
                number(s.median),
                number(s.p95),
                number(s.p99),
                figure.floor.clone().unwrap_or_default(),
                figure
                    .ratio
                    .map(|ratio| format!("{ratio:.2}"))
                    .unwrap_or_default(),
            ]);
        }
        for column in 4..9 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }

    fn targets_table(&self, style: comfy_table::TableStyle) -> String {
        let mut table = comfy_table::Table::new();
        table
            .load_style(style)
            .set_header(["case", "ground", "wanted", "found", "met"]);
        for (figure, target) in self.targets() {
            let met = if target.met { "yes" } else { "NO" };
            table.add_row([figure.case, figure.ground, &target.wanted, &target.found, met]);
        }
        table.to_string()
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
