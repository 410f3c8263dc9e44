//! Frames that the path duplicates, and their mistaken interpretations.

use super::*;
use weir_core::link::Damage;

fn endless() -> Source {
    Source { bytes: None, until: Time::MAX, rate: None, bursts: None }
}

/// Returns a sender with windows of 34 segments.
fn windows_of_34(recovery: Recovery) -> TcpConfig {
    TcpConfig { initial_window: 34, initial_ssthresh: Some(34 * 960), ..plain(recovery) }
}

#[test]
fn a_duplicate_of_what_was_not_sent_again_undoes_nothing() {
    // The fourth segment is lost, and a later one of its window is duplicated. RFC 3708 section 3 requires a
    // DSACK of the retransmitted segment.
    for recovery in [Recovery::Rack, Recovery::Sack] {
        for twice in [10, 20, 34, 35] {
            let sieve = Sieve::new([2 + 3], Fate::Lost).and([2 + twice], Fate::Twice);
            let mut rig = Rig::with_sieves(wire(100, 50), wire(100, 50), sieve, Sieve::default());
            rig.flow(windows_of_34(recovery), AT(0), endless());
            rig.world.run_until(AT(600));
            let s = rig.sender(0);
            assert_eq!((s.retransmits, s.rtos), (1, 0));
            assert_eq!(s.trace.last().unwrap().ssthresh / 960, 17, "{recovery:?} {twice}");
        }
    }
}

#[test]
fn a_retransmission_in_vain_that_is_reported_undoes_its_reduction() {
    // The fourth segment is 90 ms late, just before its retransmission, which the receiver reports after the
    // recovery. Linux undoes the recovery nevertheless (`tcp_try_undo_dsack` in states up to Disorder).
    let sieve = Sieve::new([2 + 3], Fate::Late(MS(90)));
    let mut rig = Rig::with_sieves(wire(100, 50), wire(100, 50), sieve, Sieve::default());
    rig.flow(windows_of_34(Recovery::Rack), AT(0), endless());
    rig.world.run_until(AT(600));
    let mut thresholds: Vec<u64> = rig.sender(0).trace.iter().map(|c| c.ssthresh / 960).collect();
    thresholds.dedup();
    assert_eq!(thresholds, [34, 17, 34]);
}

#[test]
fn duplicates_on_a_lossy_path_change_next_to_nothing() {
    // 1 % of the frames are lost. Linux 6.18 reaches 3.2, 3.3 and 3.4 Mbit/s if 0, 5 and 20 % of the others
    // are duplicated. If reductions were undone, it would be twice as much, or the whole link. Four flows
    // lose about 340 frames in 30 s, which leaves a statistical error of 4 %.
    let goodput = |recovery, percent: u64| -> u64 {
        let damage = Damage { duplicate: percent * 10_000_000_000, ..Damage::NONE };
        let lossy = link::Config { loss: Loss::permille(10), damage, seed: 3, ..wire(100, 20) };
        let mut rig = Rig::new(lossy, wire(100, 20));
        (0..4).for_each(|n| rig.flow(TcpConfig { recovery, ..tcp("reno") }, AT(n * 7), endless()));
        rig.world.run_until(Time::from_secs(30));
        (0..4).map(|n| rig.receiver(n).received * 8 / 30 / 4).sum()
    };
    for recovery in [Recovery::Rack, Recovery::Sack] {
        for percent in [5, 20] {
            let got = goodput(recovery, percent);
            assert!((2_900_000..3_800_000).contains(&got), "{recovery:?} {percent} %: {got}");
        }
    }
}
