//! Time that passes, what an engine does in it, and what is known of the queues.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ringfence_core::*;

use super::World;

impl World {
    /// Lets time pass; the engine ticks the host whenever it asked for it.
    pub fn pass(&mut self, milliseconds: i64) {
        let end = self.now + TimeDelta::milliseconds(milliseconds);
        while let Some(at) = self.wake_at.filter(|at| *at <= end) {
            let step = (at - self.now).max(TimeDelta::zero());
            self.now += step;
            self.real += step;
            self.settle();
            self.tick();
        }
        self.real += end - self.now;
        self.now = end;
        self.settle();
    }

    /// Lets time pass while no engine is there.
    pub fn pass_unseen(&mut self, milliseconds: i64) {
        let step = TimeDelta::milliseconds(milliseconds);
        self.now += step;
        self.real += step;
        self.settle();
    }

    /// Moves the engine's clock and nothing else.
    pub fn move_clock(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
    }

    /// Whether workers take power tasks, only not those of this host yet.
    pub fn line_moves(&mut self, moves: bool) {
        let line = moves.then(|| TaskQueue {
            resource: Resource::Power,
            zone: "here".to_owned(),
        });
        self.queues = Queues::There {
            moving: line.into_iter().collect(),
            empty: BTreeSet::new(),
            began_at: None,
        };
    }

    /// Workers serve the queue of power tasks, and none waits in it.
    pub fn line_is_empty(&mut self) {
        let line = TaskQueue {
            resource: Resource::Power,
            zone: "here".to_owned(),
        };
        self.queues = Queues::There {
            moving: BTreeSet::new(),
            empty: [line].into(),
            began_at: None,
        };
    }

    /// The bus begins anew, without what was sent before.
    pub fn bus_begins_anew(&mut self) {
        self.queues = Queues::There {
            moving: BTreeSet::new(),
            empty: BTreeSet::new(),
            began_at: Some(self.now),
        };
    }

    /// No worker can take a task from any queue, until the story says which queues move.
    pub fn broker_goes_away(&mut self) {
        self.queues = Queues::Away;
    }

    pub fn tick(&mut self) {
        self.agent_asks();
        let queues = self.queues.clone();
        self.give(Input::Tick { queues })
            .expect("a tick is never refused");
        if fence_due(&self.state).is_some_and(|due| due <= self.now) {
            let plan = Ok(self.plan.clone());
            self.auto_fence(plan);
        } else if look_due(self.state.operation.as_ref()).is_some_and(|due| due <= self.now) {
            self.look_again();
        }
    }

    /// What an engine does with a fence that safeguards hold.
    fn look_again(&mut self) -> Reply {
        let input = Input::LookAgain {
            around: self.around(),
            opinions: self.opinions.clone(),
        };
        self.give(input).expect("it is never refused")
    }

    /// What an engine does with a host that is due.
    pub fn auto_fence(&mut self, plan: Result<FrozenPlan, String>) -> Reply {
        let input = Input::AutoFence {
            operation_id: OperationId(self.next_id()),
            plan,
            sufficient_sets: self.plan.sufficient_sets.clone(),
            around: self.around(),
            opinions: self.opinions.clone(),
        };
        self.give(input).expect("it is never refused")
    }

    /// How the hosts of its segment stand: the others, and this one.
    fn around(&self) -> Neighbourhood {
        let Neighbourhood {
            hosts,
            out_of_service,
            lately,
            ..
        } = &self.others;
        Neighbourhood {
            hosts: *hosts + 1,
            out_of_service: *out_of_service + 1,
            lately: *lately + 1,
            ..self.others.clone()
        }
    }
}
