//! What is really so.

use ringfence_core::Timestamp;
use ringfence_world::cloud::{Server, Start};
use ringfence_world::{Cloud, Feed, Heard, Machine, Site};

use super::Packer;

pub(super) fn site(p: &mut Packer, site: &Site, told_alive_at: Timestamp) {
    let Site {
        // Never changes in a configuration.
        manners: _,
        feeds,
        paths: _,
        sets: _,
        watchdog_s: _,
        asks_first: _,
        watchdog_early: _,
        watchdog_resets: _,
        plugged,
        plugged_by_hand,
        meddled_at,
        machine,
        boot,
        booted_at,
        cause,
        begun_with,
        boot_ms: _,
        running,
        lands_ms: _,
        landing_until,
        landing_elsewhere_until,
        links,
        heard,
        alone_since,
        cut_boots,
        has_had_storage_back,
        released_to,
        was_cut,
        had_power,
        at,
    } = site;
    for device in feeds.values() {
        feed(p, device);
    }
    p.flag(*plugged);
    p.flag(*plugged_by_hand);
    // The judge asks whether a sign of life has come since.
    p.some(*meddled_at, |p, at| {
        p.flag(told_alive_at <= at);
        if told_alive_at <= at {
            p.really(at);
        }
    });
    self::machine(p, *machine);
    p.number(u64::from(*boot));
    if p.matters.dates {
        p.really(*booted_at);
    }
    p.byte(*cause as u8);
    p.number(u64::from(*begun_with));
    p.flag(*running);
    p.some(*landing_until, Packer::really);
    p.some(*landing_elsewhere_until, Packer::really);
    for is_up in links.values() {
        p.flag(*is_up);
    }
    for (name, Heard { at, boot, booted_at }) in heard {
        p.text(name);
        p.really(*at);
        p.number(u64::from(*boot));
        if p.matters.dates {
            p.really(*booted_at);
        }
    }
    if p.matters.watchdog {
        p.some(*alone_since, Packer::really);
    }
    p.list(cut_boots.iter(), |p, boot| p.number(u64::from(*boot)));
    p.flag(*has_had_storage_back);
    p.some(*released_to, |p, boot| p.number(u64::from(boot)));
    p.flag(*was_cut);
    p.flag(*had_power);
    p.really(*at);
}

fn feed(p: &mut Packer, feed: &Feed) {
    let Feed {
        open,
        by_hand,
        pending,
        old,
    } = feed;
    p.flag(*open);
    p.flag(*by_hand);
    p.list(pending.iter(), |p, (at, open)| {
        p.really(*at);
        p.flag(*open);
    });
    p.some(*old, |p, (at, open)| {
        p.really(at);
        p.flag(open);
    });
}

fn machine(p: &mut Packer, machine: Machine) {
    match machine {
        Machine::Off => p.byte(0),
        Machine::Booting(at) => {
            p.byte(1);
            p.really(at);
        }
        Machine::On => p.byte(2),
        Machine::Crashed => p.byte(3),
        Machine::Frozen => p.byte(4),
    }
}

pub(super) fn cloud(p: &mut Packer, cloud: &Cloud) {
    let Cloud {
        servers,
        open,
        forced_down,
        is_away,
        is_cluster: _,
        started,
        was_misled,
    } = cloud;
    p.list(servers.values(), |p, server| {
        let Server {
            workload: _,
            on,
            uses: _,
            fails,
        } = server;
        p.text(on);
        p.number(u64::from(*fails));
    });
    p.count(open.len());
    p.flag(*forced_down);
    p.flag(*is_away);
    p.flag(*was_misled);
    p.list(started.iter(), |p, start| {
        let Start { id: _, was_safe } = start;
        p.flag(*was_safe);
    });
}
