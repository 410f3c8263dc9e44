//! Frames that come out twice, or broken.

use super::*;
use crate::frame::{Checksum, Frames};
use crate::wire::{self, checksum};

/// A whole segment of 1,500 bytes of IP, with its number in its first port.
fn segment(number: u16) -> Vec<u8> {
    SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(number, 80).payload(1460).build()
}

fn is_sound(bytes: &[u8]) -> bool {
    wire::packet(bytes, bytes.len())
        .is_ok_and(|p| checksum::verify(bytes, bytes.len(), &p) == Checksum::Valid)
}

#[test]
fn a_copy_comes_out_behind_its_frame_and_takes_nothing_of_the_rate() {
    let damage = Damage { duplicate: TRILLION, corrupt: 0 };
    let mut r = rig(Config { damage, delay: Duration::from_millis(5), ..ten_mbit() });
    r.inject(Link::IN, segment(1)).inject(Link::IN, segment(2));
    let sent = r.run_until(Time::from_secs(1));
    assert_eq!(sent.iter().map(|s| s.at).collect::<Vec<_>>(), [us(6200), us(6200), us(7400), us(7400)]);
    assert!(sent.chunks(2).all(|two| two[0] == two[1]) && sent[0].bytes == segment(1));
    let (stats, ledger) = (r.node().stats(), r.node().ledger());
    assert_eq!((stats.packets, stats.duplicated, stats.busy), (2, 2, Duration::from_micros(2400)));
    assert_eq!((ledger.received, ledger.made, ledger.sent, ledger.held()), (2, 2, 4, 0));
    r.finish();
}

#[test]
fn without_room_for_a_copy_there_is_none() {
    let damage = Damage { duplicate: TRILLION, corrupt: 0 };
    let mut r = Rig::with_pool(Link::new(Config { damage, ..ten_mbit() }), Frames::new(2, 2048, 0));
    r.inject(Link::IN, segment(1)).inject(Link::IN, segment(2));
    let sent = r.run_until(Time::from_secs(1));
    // The first is copied into the chunk that the second takes.
    let number = |s: &Sent| u16::from_be_bytes([s.bytes[34], s.bytes[35]]);
    assert_eq!(sent.iter().map(number).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!((r.frames().exhausted(), r.node().stats().duplicated), (1, 1));
    r.finish();
}

/// The draws of one kind do not change those of the other.
#[test]
fn shares_of_copies_and_of_broken_frames() {
    let damage = Damage { duplicate: TRILLION / 5, corrupt: TRILLION / 10 };
    let of = |damage, seed| {
        let mut r = rig(Config { damage, seed, ..Config::default() });
        for n in 0..2000 {
            r.at(us(u64::from(n))).inject(Link::IN, segment(n));
        }
        let sent = r.run_until(Time::from_secs(1));
        let stats = r.node().stats();
        assert_eq!(sent.len() as u64, 2000 + stats.duplicated);
        assert_eq!(sent.iter().filter(|s| !is_sound(&s.bytes)).count() as u64, stats.corrupted);
        r.finish();
        (stats.duplicated, stats.corrupted)
    };
    let (duplicated, corrupted) = of(damage, 3);
    // Binomial(2000, 20 %): 400, standard deviation 17.9. Binomial(2400, 10 %): 240, standard deviation 14.7.
    assert!((320..480).contains(&duplicated) && (170..310).contains(&corrupted), "{duplicated} {corrupted}");
    assert_eq!(of(Damage { corrupt: 0, ..damage }, 3), (duplicated, 0));
    assert_ne!(of(damage, 4), (duplicated, corrupted));
}
