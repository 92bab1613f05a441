//! Histories, as chance puts them together.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use ringfence_core::*;

use super::{Action, Lie, Told, Truthfulness};

pub fn history(truthfulness: Truthfulness) -> BoxedStrategy<Vec<Action>> {
    let rest = proptest::collection::vec(action(truthfulness), 1..60);
    (select(beginnings()), rest)
        .prop_map(|(beginning, rest)| beginning.into_iter().chain(rest).collect())
        .boxed()
}

/// A word of a person, most often one that is heard when it is said.
pub fn say() -> impl Strategy<Value = Action> {
    let ago_ms = prop_oneof![3 => Just(0), 2 => 0..30_000_u32, 1 => 0..700_000_u32];
    (-1..2_i8, ago_ms, any::<bool>(), any::<bool>()).prop_map(
        |(generation_off_by, ago_ms, is_admin, override_up)| Action::Say {
            generation_off_by,
            ago_ms,
            is_admin,
            override_up,
        },
    )
}

/// Starts in interesting states, which random actions rarely reach.
fn beginnings() -> Vec<Vec<Action>> {
    let see = |link, boot| Action::SeeTruly {
        by: 0,
        link,
        boot,
        late_ms: 0,
    };
    let rejoin = || Action::Rejoin {
        boot_confirmed: false,
    };
    let silent = || vec![see(true, Told::Dated(0)), see(false, Told::Id)];
    let lost = |more: Vec<Action>| [silent(), more].concat();
    let and =
        |more: Vec<Action>| lost([vec![Action::Fence, Action::WorkOff, Action::Pass(30_000)], more].concat());
    let back = |boot| {
        vec![
            Action::PowerReturns,
            Action::Crash(true),
            Action::Pass(5_000),
            see(true, boot),
        ]
    };
    let moving = || vec![Action::Evacuate, Action::Work, Action::Work];
    vec![
        Vec::new(),
        lost(vec![Action::Fence]),
        lost(vec![Action::AskByProgram]),
        lost(vec![
            Action::OthersFail(1),
            Action::AskByProgram,
            Action::Pass(1),
            Action::CancelByProgram,
        ]),
        lost(vec![Action::Fence, Action::Take]),
        lost(vec![Action::Fence, Action::Watch(20)]),
        lost(vec![
            Action::Fence,
            Action::Work,
            Action::Pass(120_000),
            Action::PowerReturns,
        ]),
        and(Vec::new()),
        and(moving()),
        and([moving(), vec![Action::Take, Action::Cancel, rejoin()]].concat()),
        and([moving(), vec![Action::Take], back(Told::Id)].concat()),
        and(vec![see(true, Told::Id), rejoin(), Action::Work]),
        and([back(Told::Dated(0)), vec![rejoin(), Action::Take]].concat()),
        and(vec![rejoin(), Action::Take]),
        and(vec![rejoin(), Action::Take, Action::Cancel]),
        and([back(Told::Id), silent(), vec![Action::Fence]].concat()),
        and([back(Told::Dated(0)), vec![rejoin(), Action::Pass(300_000)]].concat()),
        and(vec![rejoin(), Action::Work, Action::Pass(200_000), Action::Fence]),
        and(vec![
            rejoin(),
            Action::Work,
            Action::Pass(5_000),
            see(true, Told::Dated(0)),
            Action::WorkOff,
        ]),
    ]
}

fn told() -> impl Strategy<Value = Told> + Clone {
    // The largest error of a host's clock that the rules allow for.
    let skew_s = || -9..10_i8;
    prop_oneof![
        2 => Just(Told::Nothing),
        3 => Just(Told::Id),
        3 => skew_s().prop_map(Told::Dated),
        1 => skew_s().prop_map(Told::DateAlone),
    ]
}

fn see() -> impl Strategy<Value = Action> {
    let late_ms = prop_oneof![3 => Just(0), 1 => 1..20_000_u32];
    let by = prop_oneof![3 => Just(0_u8), 1 => Just(1_u8)];
    (by, any::<bool>(), told(), late_ms).prop_map(|(by, link, boot, late_ms)| Action::SeeTruly {
        by,
        link,
        boot,
        late_ms,
    })
}

fn scope() -> impl Strategy<Value = SuspensionScope> {
    proptest::sample::select(SuspensionScope::ALL)
}

fn action(truthfulness: Truthfulness) -> BoxedStrategy<Action> {
    let index = any::<Index>;
    let common = prop_oneof![
        6 => Just(Action::Fence),
        3 => Just(Action::AskByProgram),
        4 => any::<bool>().prop_map(|boot_confirmed| Action::Rejoin { boot_confirmed }),
        4 => Just(Action::Evacuate),
        1 => any::<bool>().prop_map(Action::CloudGoesAway),
        1 => (0..8_u8).prop_map(Action::OthersFail),
        1 => any::<bool>().prop_map(Action::RoomGoes),
        2 => any::<bool>().prop_map(Action::Ail),
        1 => (scope(), proptest::option::weighted(0.7, 1..600_u16)).prop_map(|(scope, s)| Action::Suspend(scope, s)),
        2 => scope().prop_map(Action::Resume),
        1 => Just(Action::PullAndSay),
        2 => (index(), any::<bool>()).prop_map(|(of, is_admin)| Action::Release { of, is_admin }),
        2 => Just(Action::Cancel),
        1 => Just(Action::CancelByProgram),
        2 => Just(Action::RejoinByProgram),
        1 => Just(Action::EvacuateByProgram),
        1 => Just(Action::CancelAnOldOne),
        2 => Just(Action::Retry),
        5 => see(),
        1 => (1..15_u8).prop_map(Action::Watch),
        6 => index().prop_map(Action::Deliver),
        1 => index().prop_map(Action::Busy),
        1 => index().prop_map(Action::Renew),
        5 => index().prop_map(Action::Command),
        4 => index().prop_map(Action::Finish),
        4 => index().prop_map(Action::Arrive),
        4 => Just(Action::Take),
        10 => Just(Action::Work),
        2 => Just(Action::WorkOff),
        5 => (0..3_000_u32).prop_map(Action::Pass),
        4 => (3_000..60_000_u32).prop_map(Action::Pass),
        1 => (60_000..700_000_u32).prop_map(Action::Pass),
        1 => (0..60_000_u32).prop_map(Action::PassUnseen),
        1 => Just(Action::Tick),
        1 => any::<bool>().prop_map(Action::LineMoves),
        1 => Just(Action::BrokerGoesAway),
        1 => Just(Action::PowerReturns),
        1 => any::<bool>().prop_map(Action::Crash),
    ];
    if truthfulness == Truthfulness::Truthful {
        return common.boxed();
    }
    let boot = || proptest::option::of(0..3_u8);
    let state = || select(FailureState::ALL.to_vec());
    let lies = || {
        let all: Vec<Lie> = Lie::IN_THE_NAME
            .into_iter()
            .chain([Lie::NothingRead, Lie::WrongState])
            .collect();
        select(all)
    };
    prop_oneof![
        14 => common,
        1 => say(),
        2 => (state(), -5..20_i8, boot()).prop_map(|(state, age_s, boot)| Action::Report { state, age_s, boot }),
        1 => (0..3_u8).prop_map(Action::ForgetSource),
        2 => (index(), lies()).prop_map(|(of, lie)| Action::Forge { of, lie }),
        1 => prop_oneof![Just(86_400), Just(-86_400), -100..100_i32].prop_map(Action::MoveClock),
    ]
    .boxed()
}
