//! Rules of erasure, one by one: pairs of packets, and the ones that are left.

use super::*;
use crate::wire::build::{SegmentBuilder, Sum};
use crate::wire::packet;
use proptest::prelude::*;

const BASE: u32 = 0xffff_f000; // numbers wrap
const MSS: u32 = 1448;

type Change = fn(SegmentBuilder) -> SegmentBuilder;

/// An ACK of `n` segments beyond the base, with timestamps that continue the earlier ones.
fn segment(n: u32) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 2], [10, 0, 0, 1])
        .seq(77)
        .ack(BASE.wrapping_add(n * MSS))
        .flags(Flags::ACK)
        .window(400)
}

fn read(segment: &SegmentBuilder) -> Option<Ack> {
    let bytes = segment.build();
    let p = packet(&bytes, bytes.len()).ok()?;
    Ack::read(&bytes, bytes.len(), &p, Checksum::Unknown)
}

fn blocks(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let at = |n: u32| BASE.wrapping_add(n * MSS);
    edges.iter().map(|&(l, r)| (at(l), at(r))).collect()
}

/// Returns whether the last but one of these is erased when the last one arrives, after `left` duplicates
/// have left.
fn erased_after(left: u8, segments: &[SegmentBuilder]) -> bool {
    let mut seen = Seen::default();
    let acks: Vec<Option<Ack>> = segments
        .iter()
        .map(|s| {
            let mut ack = read(s)?;
            seen.learn(&mut ack, 0);
            Some(ack)
        })
        .collect();
    match acks.as_slice() {
        [.., Some(older), Some(newer)] => {
            let mut told = Told::default();
            let duplicate = Ack { role: Role::Duplicate, sack: SackBlocks::default(), ..*older };
            (0..left).for_each(|_| told.note(&duplicate));
            older.is_redundant(newer, None, &told)
        }
        _ => false,
    }
}

fn erased(segments: &[SegmentBuilder]) -> bool {
    erased_after(0, segments)
}

/// Two ACKs of progress behind a first one, changed.
fn pair(older: Change, newer: Change) -> bool {
    let stamped = |n: u32| segment(n).ts(100 + n, 200 + n);
    erased(&[stamped(0), older(stamped(2)), newer(stamped(4))])
}

#[test]
fn progress_makes_progress_redundant() {
    assert!(pair(|s| s, |s| s));
    assert!(erased(&[segment(0), segment(1), segment(2)]), "without timestamps");
    let v6 = |n: u32| {
        let ack = BASE.wrapping_add(n * MSS);
        SegmentBuilder::v6([1; 16], [2; 16]).seq(77).ack(ack).flags(Flags::ACK).window(9)
    };
    assert!(erased(&[v6(0), v6(1), v6(2)]));
    assert!(!erased(&[segment(1), segment(2)]), "of the first one nobody knows what it was");
}

/// Each row changes the older ACK, the newer one, or both.
#[test]
fn what_is_unusual_is_kept_and_erases_nothing() {
    let rows: [(&str, Change); 21] = [
        ("payload", |s| s.payload(1)),
        ("FIN", |s| s.flags(Flags::ACK | Flags::FIN)),
        ("RST", |s| s.flags(Flags::ACK | Flags::RST)),
        ("SYN", |s| s.flags(Flags::ACK | Flags::SYN)),
        ("PSH", |s| s.flags(Flags::ACK | Flags::PSH)),
        ("URG", |s| s.flags(Flags::ACK | Flags::URG)),
        ("urgent pointer", |s| s.urgent(1)),
        ("a reserved flag", |s| s.flags(Flags(Flags::ACK.0 | 0x200))),
        ("no ACK flag", |s| s.flags(Flags::NONE)),
        ("wrong checksum", |s| s.checksum(Sum::Wrong)),
        ("fragment", |s| s.fragment(0, true)),
        ("IP options", |s| s.ip_options(&[1, 1, 1, 1])),
        ("MPTCP", SegmentBuilder::mptcp),
        ("TCP-AO", SegmentBuilder::ao),
        ("MD5", SegmentBuilder::md5),
        ("two AccECN options", |s| s.option(172, &[0; 3]).option(174, &[0; 3])),
        ("an AccECN option of a wrong length", |s| s.option(172, &[0; 4])),
        ("an AccECN option and an unknown one", |s| s.option(172, &[0; 3]).option(200, &[0; 2])),
        ("unknown option", |s| s.option(200, &[0; 2])),
        ("malformed option", |s| s.raw_options(&[8, 3, 0, 1])),
        ("closed window", |s| s.window(0)),
    ];
    for (what, change) in rows {
        assert!(!pair(change, |s| s), "{what}: the older one");
        assert!(!pair(|s| s, change), "{what}: the newer one");
        assert!(!pair(change, change), "{what}: both");
    }
}

#[test]
fn a_partial_checksum_is_the_host_s_own() {
    assert!(pair(|s| s.checksum(Sum::Partial), |s| s.checksum(Sum::Partial)));
}

#[test]
fn numbers_and_times_go_forward() {
    assert!(!erased(&[segment(0), segment(2), segment(1)]), "an older one has been overtaken");
    assert!(!erased(&[segment(4), segment(2), segment(6)]), "an old one is not what it seems");
    assert!(
        !erased(&[segment(0), segment(2), segment(4).seq(78)]),
        "another sequence number: a keepalive, or data between"
    );
    assert!(!pair(|s| s.ts(105, 202), |s| s.ts(104, 204)), "TSval goes back");
    assert!(!pair(|s| s.ts(102, 205), |s| s.ts(104, 204)), "TSecr goes back");
    assert!(!erased(&[segment(0).ts(1, 1), segment(2).ts(2, 2), segment(4)]), "one without timestamps");
}

#[test]
fn windows_that_open_or_close_and_duplicates_are_kept() {
    let at = |n: u32, window: u16| segment(n).window(window);
    assert!(erased(&[at(0, 400), at(2, 390), at(4, 410)]), "progress with another window is progress");
    assert!(!erased(&[at(0, 0), at(2, 400), at(4, 400)]), "what opened a closed window");
    assert!(!erased(&[at(0, 400), at(0, 500), at(2, 500)]), "what opened it further and told nothing else");
    assert!(!erased(&[at(0, 400), at(0, 400), at(2, 400)]), "a duplicate, a window probe's answer");
    assert!(
        !erased(&[at(0, 400), at(2, 400), at(2, 400)]),
        "the first of two equal ones: the second is a duplicate behind it"
    );
}

#[test]
fn congestion_signals_are_kept() {
    let ece = |s: SegmentBuilder| s.flags(Flags::ACK | Flags::ECE);
    assert!(pair(ece, ece), "the same state, which the newer one shows");
    assert!(!pair(|s| s.flags(Flags::ACK | Flags::ECE), |s| s), "it ends");
    assert!(!pair(|s| s, |s| s.flags(Flags::ACK | Flags::ECE)), "it begins: what came before was not marked");
    assert!(!pair(|s| s.flags(Flags::ACK | Flags::CWR), |s| s));
    // Every move of Accurate ECN's counter shows.
    let ace = |n: u32, ace: u8| segment(n).flags(Flags::ACK | Flags::of_ace(ace));
    for (before, after) in [(5, 6), (5, 4), (7, 0), (0, 1)] {
        assert!(!erased(&[ace(0, before), ace(1, before), ace(2, after)]), "{before} to {after}");
    }
    assert!(erased(&[ace(0, 5), ace(1, 5), ace(2, 5)]));
    assert!(!pair(|s| s.tos(3), |s| s.tos(2)), "an ACK that was itself marked");
    assert!(!pair(|s| s.tos(0xb8), |s| s), "another type of service");
}

#[test]
fn an_accecn_flow_is_known_by_its_counter() {
    let mut seen = Seen::default();
    let mut told = |flags| {
        seen.learn(&mut read(&segment(0).flags(flags)).unwrap(), 0);
        seen.is_accecn()
    };
    assert_eq!([told(Flags::ACK), told(Flags::ACK | Flags::ECE)], [false, false], "RFC 3168");
    assert!(told(Flags::ACK | Flags::AE) && told(Flags::ACK), "RFC 9768");
}

#[test]
fn sack_blocks_are_covered_or_kept() {
    let sack = |n: u32, edges: &[(u32, u32)]| segment(n).sack(&blocks(edges));
    // Progress behind holes: RFC 2018's blocks grow.
    assert!(erased(&[segment(0), sack(1, &[(5, 6)]), sack(2, &[(5, 7)])]));
    assert!(erased(&[segment(0), sack(1, &[(5, 6)]), sack(2, &[(9, 10), (5, 6)])]));
    assert!(erased(&[segment(0), sack(1, &[(5, 6)]), segment(6)]), "all of it is acknowledged");
    assert!(!erased(&[segment(0), sack(1, &[(5, 6)]), segment(2)]), "the block is nowhere");
    assert!(!erased(&[segment(0), sack(1, &[(5, 7)]), sack(2, &[(6, 8)])]), "half of it");
    assert!(erased(&[segment(0), segment(1), sack(2, &[(5, 6)])]), "what had none");
    // RFC 2883: duplicates are reported once.
    assert!(!erased(&[segment(4), sack(5, &[(1, 2)]), segment(6)]), "below the acknowledgement");
    assert!(
        !erased(&[segment(4), sack(5, &[(8, 9), (7, 10)]), sack(6, &[(7, 10)])]),
        "within the second block"
    );
    assert!(erased(&[segment(0), segment(1), sack(2, &[(0, 1)])]), "a newer one may report");
}

#[test]
fn duplicates_are_redundant_when_three_have_left() {
    let duplicate = |right: u32| segment(2).sack(&blocks(&[(4, right)]));
    let all = [segment(2), duplicate(5), duplicate(6)];
    let found: Vec<bool> = (0..5).map(|left| erased_after(left, &all)).collect();
    assert_eq!(found, [false, false, false, true, true]);
    assert!(erased_after(3, &[segment(2), duplicate(5), segment(6)]), "acknowledged, with all that it told");
    assert!(!erased_after(3, &[segment(2), segment(2), segment(2)]), "without SACK each one counts");
    assert!(!erased_after(3, &[segment(0), segment(2), duplicate(5)]), "what they are duplicates of");
    let window = |right: u32, window: u16| duplicate(right).window(window);
    assert!(
        erased_after(3, &[segment(2), window(5, 410), window(6, 410)]),
        "the newer one opens the window as far"
    );
    assert!(!erased_after(3, &[segment(2), window(5, 410), window(6, 409)]), "it does not");
    assert!(
        erased_after(3, &[segment(2), window(5, 390), window(6, 380)]),
        "data beyond the hole takes room"
    );
}

/// A duplicate ACK with these SACK blocks.
fn duplicate(edges: &[(u32, u32)]) -> Ack {
    Ack { role: Role::Duplicate, ..read(&segment(2).sack(&blocks(edges))).unwrap() }
}

/// RFC 2018 §4: an option has three blocks beside timestamps, the newest first. Blocks reported by the last
/// ACK that left need not be reported again.
#[test]
fn blocks_that_have_left_are_told() {
    let [first, second, third] = [&[(4, 5)][..], &[(6, 7), (4, 5)], &[(8, 9), (6, 7)]].map(duplicate);
    let mut told = Told::default();
    (0..3).for_each(|_| told.note(&first));
    assert!(second.is_redundant(&third, None, &told), "the first block has left");
    told.note(&duplicate(&[(10, 11)]));
    assert!(!second.is_redundant(&third, None, &told), "with the last one that had blocks it had not");
}

/// Blocks that the ACK waiting before the older one reports need not be reported again, if that ACK is
/// believed.
#[test]
fn blocks_of_the_ack_before_are_told() {
    let [first, second, third] = [&[(4, 5)][..], &[(6, 7), (4, 5)], &[(8, 9), (6, 7)]].map(duplicate);
    let mut told = Told::default();
    (0..3).for_each(|_| told.note(&Ack { sack: SackBlocks::default(), ..first }));
    assert!(second.is_redundant(&third, Some(&first), &told));
    assert!(!second.is_redundant(&third, None, &told));
    let forged = Ack { role: Role::Alone, ..first };
    assert!(!second.is_redundant(&third, Some(&forged), &told), "what is not believed tells nothing");
    told.note(&forged);
    assert!(!second.is_redundant(&third, None, &told), "nor when it has left");
}

/// RFC 7323 §2.2, §2.3: a shift of 14 at most, and none where the SYN has no option.
#[test]
fn windows_have_the_scale_of_the_syn() {
    for (offered, shift) in [(Some(2), 2), (Some(14), 14), (Some(255), 14), (None, 0)] {
        let erases = |beyond: u32| {
            let mut seen = Seen::default();
            seen.begin(offered);
            let to = BASE.wrapping_add(MSS + (400 << shift) + beyond);
            let [_, older, newer] = [segment(0), segment(1), segment(0).ack(to)].map(|s| {
                let mut ack = read(&s).unwrap();
                seen.learn(&mut ack, 0);
                ack
            });
            older.is_redundant(&newer, None, &Told::default())
        };
        assert_eq!((shift, erases(0), erases(1)), (shift, MSS <= 400 << shift, false), "{offered:?}");
    }
}

/// Full segments and marks of an ACK for `segments` of them, of which `marked` are, with the option in the
/// first ACK and in this one, or in this one alone.
fn stands_for(segments: u32, marked: u32, first_has: bool) -> (Stands, bool) {
    let ack = |n: u32, marked: u32, has: bool| {
        let flags = Flags::ACK | Flags::of_ace((5 + marked) as u8);
        let data = [&[0, 0, 1], &(marked * MSS).to_be_bytes()[1..]].concat();
        let plain = segment(n).flags(flags);
        if has {
            plain.option(172, &data)
        } else {
            plain
        }
    };
    let mut seen = Seen::default();
    let [_, last] = [ack(0, 0, first_has), ack(segments, marked, true)].map(|segment| {
        let mut ack = read(&segment).unwrap();
        seen.learn(&mut ack, MSS as u16);
        ack
    });
    let stands = Stands::of(Some(&last));
    (stands, stands.fits(&last, &seen))
}

/// A receiver behind receive offload acknowledges many segments at once, and its counter of packets moves by
/// nine as by one. RFC 9768 §3.2.2.5: eight packets hide that it has gone around.
#[test]
fn an_accecn_ack_stands_for_all_that_it_acknowledges() {
    let [few, many, around] = [(1, 1), (12, 1), (12, 9)].map(|(n, marked)| stands_for(n, marked, false).0);
    assert_eq!((few, many), (Stands { packets: 2, marks: 1 }, Stands { packets: 12, marks: 1 }));
    assert_eq!(around, Stands { packets: 12, marks: 1 }, "the first one has no counter of bytes");
    assert_eq!(stands_for(12, 9, true).0, Stands { packets: 12, marks: 9 });
    let fit = [(7, 1), (8, 1)].map(|(n, marked)| stands_for(n, marked, false).1);
    assert_eq!(fit, [true, false], "its sender has heard an ACK without the option");
}

/// A receiver cannot acknowledge more than it has allowed: 400 << 14 bytes at most. An ACK beyond that is not
/// believed.
#[test]
fn what_cannot_be_true_is_kept_and_remembered_nowhere() {
    let far = || segment(0).ack(BASE.wrapping_add((400 << 14) + 2 * MSS + 1));
    assert!(!erased(&[segment(0), segment(2), far()]));
    assert!(erased(&[segment(0), far(), segment(2), segment(4)]), "the true ones go on as before");
    // If such ACKs continue, they are right: a SYN was missed.
    let mut seen = Seen::default();
    seen.learn(&mut read(&segment(0)).unwrap(), 0);
    let roles: Vec<Role> = (0..11u32)
        .map(|n| {
            let mut ack = read(&segment(0).ack(BASE.wrapping_sub(1 << 30).wrapping_add(n))).unwrap();
            seen.learn(&mut ack, 0);
            ack.role
        })
        .collect();
    let expected = [&[Role::Alone; 8][..], &[Role::Kept, Role::Progress, Role::Progress]].concat();
    assert_eq!(roles, expected);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..120), flip in 0usize..80, bit in 0u8..8) {
        let mut built = segment(1).ts(1, 2).sack(&blocks(&[(3, 4)])).build();
        let at = flip % built.len();
        built[at] ^= 1 << bit;
        for frame in [bytes, built] {
            if let Ok(p) = wire::any_packet(&frame, frame.len()) {
                let found = Ack::read(&frame, frame.len(), &p, Checksum::Unknown);
                // A flipped bit of the segment shows in its checksum.
                prop_assert!(found.is_none() || at < 14);
            }
        }
    }

    /// For any two ACKs: the newer one acknowledges at least as much as the older one, and reports all that
    /// it reported.
    #[test]
    fn what_is_erased_is_told(
        numbers in [0u32..8, 0u32..8, 0u32..8],
        blocks_of in prop::collection::vec(prop::collection::vec((0u32..12, 1u32..4), 0..4), 3),
        left in 0u8..5,
    ) {
        let segments: Vec<SegmentBuilder> = numbers.iter().zip(&blocks_of).map(|(&n, edges)| {
            let edges: Vec<_> = edges.iter().map(|&(l, len)| (l, l + len)).collect();
            if edges.is_empty() { segment(n) } else { segment(n).sack(&blocks(&edges)) }
        }).collect();
        if erased_after(left, &segments) {
            prop_assert!(numbers[2] > numbers[1] || (numbers[2] == numbers[1] && left >= 3));
            let told = |n: u32| n < numbers[2] || blocks_of[2].iter().any(|&(l, len)| l <= n && n < l + len);
            for &(l, len) in &blocks_of[1] {
                prop_assert!((l..l + len).all(told));
            }
        }
    }
}
