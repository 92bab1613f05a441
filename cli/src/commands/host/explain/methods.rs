//! The methods of a plan, with their last checks and times.

use crate::client::explanation::{FencePreview, LastCheck, LastTime, ResolvedMethod, ResolvedPlan};
use crate::output::{Cell, Table};

/// One row per method of the plan.
#[must_use]
pub fn methods(plan: &ResolvedPlan, fence: &FencePreview) -> Table {
    let mut table = Table::new(&[
        "STAGE",
        "TASK",
        "LEVEL",
        "METHOD",
        "PARAMETERS",
        "LAST CHECK",
        "LAST TIME",
        "IN THE WAY",
    ]);
    for (stage, number) in plan.stages.iter().zip(1..) {
        for task in &stage.tasks {
            if task.levels.is_empty() {
                let cells = ["-", "the devices that were seen off", "-", "-", "-", "-"];
                let [level, method, parameters, check, last, way] = cells.map(Cell::from);
                let stage = stage_cell(number, stage.delay_s);
                table.row([
                    stage,
                    task.kind.as_str().into(),
                    level,
                    method,
                    parameters,
                    check,
                    last,
                    way,
                ]);
            }
            for level in &task.levels {
                for method in &level.methods {
                    let stage = stage_cell(number, stage.delay_s);
                    let head = [stage, task.kind.as_str().into(), level.level.to_string().into()];
                    table.row(method_row(head, method));
                }
            }
        }
    }
    if let Some(step) = &fence.after_fenced {
        table.row([
            "FENCED".into(),
            step.kind.as_str().into(),
            "-".into(),
            step.platform.as_str().into(),
            "-".into(),
            "-".into(),
            Cell::maybe(step.last_time.as_ref().map(last_time)),
            "-".into(),
        ]);
    }
    table
}

fn stage_cell(number: u32, delay_s: u32) -> Cell {
    match delay_s {
        0 => number.to_string().into(),
        delay_s => format!("{number}, {delay_s} s later").into(),
    }
}

fn method_row([stage, task, level]: [Cell; 3], method: &ResolvedMethod) -> [Cell; 8] {
    let driver = method.driver.as_ref().map(|driver| format!(" ({driver})"));
    let parameters: Vec<_> = method
        .parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    [
        stage,
        task,
        level,
        format!("{}{}", method.name, driver.unwrap_or_default()).into(),
        Cell::maybe(some(parameters.join(" "))),
        method
            .last_check
            .as_ref()
            .map_or_else(|| Cell::word("-"), last_check),
        Cell::maybe(method.last_time.as_ref().map(last_time)),
        Cell::maybe(some(method.hindrances.join("; "))),
    ]
}

fn last_check(check: &LastCheck) -> Cell {
    let state = check.state.as_ref().map(|state| format!(" {state}"));
    let age_s = check.age_s;
    Cell::word(&check.outcome).with(format!("{}, {age_s} s ago", state.unwrap_or_default()))
}

fn last_time(last: &LastTime) -> String {
    let waited = if last.waited_ms >= 1_000 {
        format!(" after {} in the queue", seconds(last.waited_ms))
    } else {
        String::new()
    };
    let of = if last.is_of_another_host {
        ", for another host"
    } else {
        ""
    };
    format!("{} in {}{waited}{of}", last.outcome, seconds(last.took_ms))
}

/// With one decimal.
#[must_use]
pub fn seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100)
}
