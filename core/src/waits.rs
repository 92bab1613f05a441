//! What a running operation waits for, in words for the person who waits with it.

use crate::{Attempt, AttemptStatus, Awaits, Operation, OperationStatus, Stage, Task, TaskStatus, Timestamp};

/// Tasks that are told one by one.
const TOLD: usize = 3;

impl Operation {
    /// How it stands, for people: what it waits for as long as it runs, else why it stands where it does.
    #[must_use]
    pub fn told(&self) -> String {
        let waits = (self.status == OperationStatus::Running)
            .then(|| self.running().or_else(|| self.next_stage()))
            .flatten();
        waits.unwrap_or_else(|| self.detail.clone())
    }

    /// The tasks that are under way.
    fn running(&self) -> Option<String> {
        let is_running = |task: &&Task| task.status == TaskStatus::Running;
        let running: Vec<&Task> = self.tasks().filter(is_running).collect();
        let told: Vec<String> = running.iter().take(TOLD).map(|task| told_task(task)).collect();
        let more = running.len().saturating_sub(TOLD);
        let more = if more > 0 {
            format!("; and {more} more tasks")
        } else {
            String::new()
        };
        let in_line = self.told_turns();
        let told = told.join("; ") + &more;
        let parts: Vec<String> = [told, in_line]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        (!parts.is_empty()).then(|| format!("waiting: {}", parts.join("; ")))
    }

    /// The workloads that are moved after those that are under way.
    fn told_turns(&self) -> String {
        let pending = self.stages.iter().filter(|stage| stage.has_turns());
        let pending = pending.flat_map(|stage| &stage.tasks);
        match pending.filter(|task| task.status == TaskStatus::Pending).count() {
            0 => String::new(),
            1 => "1 workload waits for its turn".to_owned(),
            waiting => format!("{waiting} workloads wait for their turn"),
        }
    }

    /// A stage whose turn has come and that may not begin yet.
    fn next_stage(&self) -> Option<String> {
        let waiting = self.stages.iter().filter(|stage| stage.started_at.is_none());
        let mut entered = waiting.filter_map(|stage| Some((stage, stage.entered_at?)));
        entered.find_map(|(stage, entered_at)| match (stage.awaits, self.policy.self_fencing_timeout_s) {
            (Some(Awaits::SelfFencing), Some(timeout_s)) => Some(format!(
                "waiting: the host's own watchdog may still strike, for {timeout_s} s after the fence or until the host shows a newer boot"
            )),
            _ => (stage.delay_s > 0).then(|| told_delay(stage, entered_at)),
        })
    }
}

fn told_delay(stage: &Stage, entered_at: Timestamp) -> String {
    let kinds: Vec<&str> = stage.tasks.iter().map(|task| task.kind().as_str()).collect();
    format!(
        "waiting: the plan delays {} by {} s from {}",
        kinds.join(", "),
        stage.delay_s,
        entered_at.format("%FT%TZ")
    )
}

fn told_task(task: &Task) -> String {
    let workload = task.workload().map(|workload| format!(" of {}", workload.name));
    let workload = workload.unwrap_or_default();
    let what = format!("{}{workload}", task.kind());
    if let Some(why) = &task.detail {
        return format!("{what} {why}");
    }
    let Some(attempt) = task.attempts.last() else {
        return format!("{what} waits until what was commanded before is over, or for a free device");
    };
    format!("{what} by {}, {}", attempt.by.name(), told_attempt(attempt))
}

fn told_attempt(attempt: &Attempt) -> String {
    let number = attempt.number;
    let worker = attempt.worker.as_deref().unwrap_or("a worker");
    match attempt.state {
        AttemptStatus::Dispatched { .. } => format!("attempt {number}: no worker has taken it yet"),
        AttemptStatus::Claimed { .. } => format!("attempt {number}: {worker} carries it out"),
        AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => {
            let detail = attempt.detail.as_deref().filter(|detail| !detail.is_empty());
            let why = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("after attempt {number}{why}: it is tried again, or read again")
        }
    }
}
