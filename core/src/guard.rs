//! The guards of the rules, by name: each is one condition without which some history could open a gate that must stay closed, or hold
//! a host for ever.
//!
//! In a build with the feature `mutants` a guard can be switched off while the program runs, so that the model check, the search and
//! the tests can show that they would notice its absence. In every other build a guard is always on, and costs nothing.

/// Defines the guards with what each is for.
macro_rules! guards {
    ($($(#[doc = $what:literal])+ $name:ident),+ $(,)?) => {
        /// A guard of the rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Guard { $($(#[doc = $what])+ $name),+ }

        impl Guard {
            /// All guards.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// What it is for.
            #[must_use]
            pub fn purpose(self) -> &'static str {
                match self { $(Self::$name => concat!($($what),+)),+ }
            }
        }
    };
}

guards! {
    /// A sign of life that one source had contests the silence that another one reports since before it.
    SilenceContested,
    /// Every source that has heard the host has to report its silence.
    EveryWitnessIsSilent,
    /// A gap between two reports starts the silence anew.
    GapBreaksSilence,
    /// A source that does not say when it last saw the host tells nothing about the time between two of its reports.
    SilenceIsDated,
    /// A sign of life that a report of silence tells of starts the silence anew.
    LastSeenBreaksSilence,
    /// A sign of life starts the silence anew, however late it is reported.
    LifeBreaksSilence,
    /// A release starts the silence anew, and so does one that may still be under way.
    UndoingBreaksSilence,
    /// A clock that was set starts the silence anew.
    ClockSetBreaksSilence,
    /// A report, and not the time alone, shows that the silence has lasted.
    SilenceNeedsReports,
    /// A silence that is watched no more says nothing about a host that may have come and gone since.
    WatchHasNotLapsed,
    /// Only a host that is UNREACHABLE is silent.
    SilenceOfUnreachable,
    /// The claim of what undoes a proof ends it.
    ClaimEndsProof,
    /// A sign of life after a proof that the host had stopped ends it.
    LifeEndsProof,
    /// A sign of life of a source whose clock is behind came later than it says.
    LateSourceIsLate,
    /// A sign of life with a date from before the clock was set may be newer than what was noted then.
    LifeSinceClockSet,
    /// A reading for a claim from before the clock was set is of a time that is not known.
    ReadSinceClockSet,
    /// A sign of life that came so shortly before a reading that two clocks cannot tell counts as after it.
    ClocksApart,
    /// A sign of life after a reading of power makes it count no more.
    LifeEndsReading,
    /// A fence that is started again before it was proven reads the power again.
    RestartReadsPower,
    /// Power that counts no more is read again while the fence is under way.
    ContradictedIsReadAgain,
    /// A proof that has ended is won again by newer readings alone.
    EndedProofStaysEnded,
    /// A method that can prove nothing proves nothing.
    MethodCanProve,
    /// What a worker knows to be no proof is none.
    ReadingProves,
    /// A kind is proven only when every task of it is.
    EveryTaskProves,
    /// A task is done only when every method of its level has done it.
    EveryMethodIsDone,
    /// A set suffices only as a whole.
    WholeSetSuffices,
    /// A host that is FENCED does not become so once more.
    FencedOnce,
    /// A proof is as old as the oldest reading that it rests on.
    OldestReadingCounts,
    /// What was read is as old as the reading, and not as the message that tells of it.
    ReadBeforeItsResult,
    /// Power that the host contradicts again and again is read no more in the end.
    ContradictionEnds,
    /// A proof counts only once what the storage had accepted has landed.
    ProofSettles,
    /// A success needs the wanted state to be read back.
    WantedStateReadBack,
    /// A result counts for the claim that it was made under, and no other.
    ResultOfItsClaim,
    /// Only the result of the very claim shows that its worker has stopped.
    StoppedByItsClaim,
    /// An attempt is claimed by one worker.
    ClaimOnce,
    /// An attempt that has ended is not claimed any more.
    EndedIsNotClaimed,
    /// What its task goes on without is not claimed any more.
    ClaimOfTaskInUse,
    /// What is claimed may be taken from then on.
    TakenIsNoted,
    /// What was taken late is older than no boot that began before.
    TakenLateIsNoted,
    /// What a device has shown before its method was claimed once more says nothing of what was taken since.
    ShownSinceClaim,
    /// A refusal shows that nothing was taken only if no attempt before it may have taken it.
    StandingKeepsFirst,
    /// What a method has taken is released by that method.
    ReleasedByItsMethod,
    /// What a worker gave up without an answer may come true yet.
    UnansweredMayCome,
    /// A release that may have been under way until a worker stopped ends what the host did to itself before.
    StoppedUndoingIsNoted,
    /// What may have been switched off until a worker stopped is no host that is back.
    StoppedOffIsNoted,
    /// Nothing is sent out while its opposite may be acting.
    DispatchWaitsForOpposite,
    /// An attempt cannot be claimed while its opposite may be acting.
    ClaimWaitsForOpposite,
    /// A move cannot be claimed while the evacuate gate is closed.
    ClaimOfMoveNeedsGate,
    /// The platform is told that a host is down as long as the fence holds.
    MarkDownNeedsFence,
    /// A step that lets workloads go is not carried out by more than what is proven.
    StepKnowsWhatIsProven,
    /// How late the reports of a source are has to be learnt anew with the database.
    RestoredMayBeLate,
    /// What a proof that came after FENCED allows to be let go has to wait until what was written has landed.
    LaterProofSettles,
    /// Nothing is released to a host whose workloads are being let go.
    ReleaseWaitsForSteps,
    /// No move begins while the evacuate gate is closed.
    MoveNeedsGate,
    /// A workload is moved by one request at a time.
    OneAtAMove,
    /// An evacuation ends when the host is back.
    EvacuationEndsAtReturn,
    /// An evacuation that finds its gate closed asks a person in the end.
    HoldEnds,
    /// Power cannot be switched on while an evacuation is to come first.
    ClaimOfPowerWaits,
    /// A worker that lets workloads go is stopped when the fence holds no more.
    RenewalOfStepNeedsFence,
    /// A command that was given up is waited for as long as its device may carry it out.
    CommandLingers,
    /// What was read back after a second command may be the first one's doing: the second one may come yet.
    SecondCommandLingers,
    /// An attempt that no worker takes from a queue that moves is given up in the end.
    LineEnds,
    /// An attempt whose worker is not heard of ends.
    AttemptsEnd,
    /// A level that does not succeed ends.
    LevelEnds,
    /// What may still act is known to the end of the time by which it was claimed, also when the clock is set forward.
    ClockSetKeepsInFlight,
    /// What may still act ends in time although the clock was set back.
    ClockSetBackEndsInFlight,
    /// The evacuate gate rests on a fence of the present generation.
    GateNeedsCurrentFence,
    /// The evacuate gate rests on proofs that hold.
    GateNeedsHoldingFence,
    /// The evacuate gate is for hosts that are UNREACHABLE.
    GateNeedsUnreachable,
    /// A host that is seen UP is not fenced.
    UpIsNotFenced,
    /// A host that is seen UP before anything was done to it is left alone.
    UpStopsIdleFence,
    /// A person's word names the generation that the person looked at.
    WordNamesGeneration,
    /// A person's word waits for what may undo it.
    WordWaitsForUndoing,
    /// What may have undone a person's word before it was heard makes it count no more.
    UndoingEndsWord,
    /// A sign of life after a person's word, and before it is heard, makes it count no more.
    LifeEndsWord,
    /// How old a person's word is has to be known.
    WordIsDated,
    /// What has to outlive a process is on record before it takes effect.
    ChangeIsOnRecord,
    /// A word from before the host was taken in says nothing: whether it was alive since is not known.
    WordOfKnownHost,
    /// A confirmed release by hand waits for tasks that may still take.
    HandWaitsForFencing,
    /// A confirmed release by hand waits for steps of an evacuation that may still start workloads elsewhere.
    HandWaitsForSteps,
    /// What a fence rests on is released by a rejoin.
    HandWaitsForRejoin,
    /// A person who begins a rejoin may have plugged the host in just before.
    RejoinMayPlugIn,
    /// Nothing is fenced by itself while too much has failed at once.
    StormBrake,
    /// Nothing begins of a fence that is held.
    BrakeHolds,
    /// No automatic fence for silence begins of a host that is not seen UNREACHABLE.
    SilenceIsWaitedFor,
    /// No fence that no person asked for begins on a host that is suspended.
    SuspensionHolds,
    /// No fence that no person asked for begins on a host that a condition spares.
    SparedIsHeld,
    /// No fence that no person asked for begins while the sources that do not hear the host may be cut off themselves.
    SightHolds,
    /// No fence that no person asked for begins after a storm before it was quiet.
    CoolDownHolds,
    /// No fence that no person asked for begins on a host that a Ceph needs.
    CephHolds,
    /// No fence that no person asked for begins where a query does not allow it.
    QueryHolds,
    /// No fence that no person asked for takes one host more out of a group than may be.
    QuorumHolds,
    /// No more fences that no person asked for are under way than may be.
    AtOnceHolds,
    /// No more fences that no person asked for begin in a minute than may.
    PerMinuteHolds,
    /// Nothing of a program's fence begins before its safeguards were looked at.
    ProgramIsHeld,
    /// What was asked for before the host was suspended stands still.
    SuspendedStandsStill,
    /// What stood still when its engine lost the database stands still when it begins anew.
    RecordKeepsDespite,
    /// Nothing begins by itself on a host that is suspended.
    SuspendedBeginsNothing,
    /// A host that was fenced again and again is taken back by a person alone.
    QuarantineHolds,
    /// Of a fence that has begun by itself, no step begins before others were asked, and the hosts of its groups counted, anew.
    AsksBeforeEachStep,
    /// Nothing is scheduled on a host with a condition for which its segment says so.
    ConditionHoldsScheduling,
    /// Power that was read as off proves nothing of a host that answered when its fence began, and is seen UP still.
    WhatAnswersIsNotOff,
    /// A condition begins one fence: what began since has answered it.
    ConditionIsAnsweredOnce,
    /// A fence for a condition that is no more ends before a worker has acted.
    EndedConditionStopsIdleFence,
    /// A host that writes a crash dump keeps its power until a fence that was not asked for has waited for it.
    KdumpHoldsPower,
    /// A kdump message proves what was so when it was sent, and not when it is told.
    KdumpIsDated,
    /// A moment of another clock, or from before the clock was set, does not tell when a kdump message was sent.
    KdumpOfThisClock,
    /// A kdump message from before a fence proves nothing of it.
    KdumpSinceFence,
    /// A kdump message from before a sign of life proves nothing.
    KdumpSinceLife,
    /// What may have started the host since a kdump message makes it prove nothing.
    KdumpWaitsForUndoing,
    /// A kdump message proves something of a host alone that is UNREACHABLE.
    KdumpOfUnreachable,
    /// What a kdump message proves counts only in a set that names it.
    KdumpCountsInItsSet,
    /// A fence that was not asked for takes a permit of what is bounded.
    FenceTakesPermit,
    /// Where a segment bounds the moves of all its hosts, none begins before its turn.
    MovesTakeTurns,
    /// A backend is told that a host is down only once the host is FENCED.
    BackendAwaitsFenced,
    /// Power comes back within a fence only once the host is FENCED.
    PowerBackAfterFenced,
    /// The power comes back only after an evacuation that is wanted.
    PowerWaitsForEvacuation,
    /// A host counts as back only if it was seen since it was FENCED.
    BackSinceFence,
    /// A host counts as back only if it was seen since it was last switched off.
    BackSinceOff,
    /// A sign of life that may be from before the clock was set shows no host that is back, and no boot that was replaced.
    SeenSinceClockSet,
    /// A rejoin waits until the host is seen.
    RejoinAwaitsHost,
    /// A rejoin waits until nothing more can be taken from the host.
    RejoinAwaitsFencing,
    /// A rejoin waits for the host's own watchdog.
    RejoinAwaitsSelfFencing,
    /// What failed holds up what comes after it.
    FailedHoldsUpTheRest,
    /// A boot that was cut off does not get back what was taken from it.
    CutBootStaysCut,
    /// A boot from before a stop shows that the stop was none.
    StopLeavesNoBoot,
    /// A stop shows a new boot only if it clearly came after everything was taken.
    StopCameLater,
    /// A stop that was not part of a completed set says nothing about boots.
    StopWasSufficient,
    /// A power-on shows that the host was off until then only if its power was read as off before.
    OnWasReadOff,
    /// A power-on shows that the host was off until then only if none of its power had been switched on before.
    OnWasTheFirst,
    /// Without a date the first boot that is seen after the fence may have begun before it.
    FirstBootIsBaseline,
    /// A boot that is seen too close to the fence may have been seen before it.
    BootSeenClearlyLater,
    /// A boot that a host dates too close to the fence may have begun before it.
    BootClockMargin,
    /// What may be acting on a host outlives the database.
    RecordKeepsInFlight,
    /// Moves of workloads that may be under way outlive the database.
    RecordKeepsMoves,
    /// What a proven fence has left to do is on record.
    RecordKeepsRestOfFence,
    /// Which sources have heard a host, and which boots they saw, outlives the database.
    RecordKeepsWitnesses,
}

#[cfg(not(feature = "mutants"))]
mod switch {
    use super::Guard;

    /// Whether a guard is on: always.
    #[inline(always)]
    pub(crate) const fn on(_: Guard) -> bool {
        true
    }
}

#[cfg(feature = "mutants")]
mod switch {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Guard;

    /// The number of the guard that is off, from 1; 0 for none.
    static OFF: AtomicUsize = AtomicUsize::new(UNASKED);
    /// The environment has yet to be asked.
    const UNASKED: usize = usize::MAX;
    /// The guard that is off from the start, so that a test program can be run without it.
    const VARIABLE: &str = "RINGFENCE_TEST_WITHOUT_GUARD";

    /// Whether a guard is on.
    pub(crate) fn on(guard: Guard) -> bool {
        let off = match OFF.load(Ordering::Relaxed) {
            UNASKED => {
                let name = std::env::var(VARIABLE).unwrap_or_default();
                switch_off(Guard::ALL.iter().copied().find(|guard| guard.name() == name));
                OFF.load(Ordering::Relaxed)
            }
            off => off,
        };
        off != guard as usize + 1
    }

    /// Switches one guard off for the whole process, and every other one on.
    pub fn switch_off(guard: Option<Guard>) {
        OFF.store(guard.map_or(0, |guard| guard as usize + 1), Ordering::Relaxed);
    }
}

pub(crate) use switch::on;
#[cfg(feature = "mutants")]
pub use switch::switch_off;
