//! Examples of RFC 2018 and 2883, and a comparison with a map of bytes.

use super::*;
use proptest::prelude::*;

impl Reassembly {
    /// Returns the bytes received out of order.
    fn buffered(&self) -> u64 {
        self.above.iter().flat_map(|above| &above.ranges).map(|r| r.end - r.start).sum()
    }
}

/// Receives all bytes before `next` in one segment.
fn from(next: u64) -> Reassembly {
    let mut r = Reassembly::new();
    assert_eq!(r.receive(0, next).advanced, next);
    r
}

fn blocks(r: &Reassembly) -> Vec<(u64, u64)> {
    let mut out = [(0, 0); MAX_BLOCKS];
    let n = r.blocks(MAX_BLOCKS, &mut out);
    out[..n].to_vec()
}

/// Receives a segment. Returns its ACK: the acknowledgement, then D-SACK if any, and SACK blocks.
fn ack(r: &mut Reassembly, start: u64, end: u64) -> (u64, Vec<(u64, u64)>) {
    let received = r.receive(start, end);
    (r.next(), received.duplicate.into_iter().chain(blocks(r)).collect())
}

// RFC 2018 §7: the left window edge is 5000, eight segments of 500 bytes are sent.

#[test]
fn rfc_2018_case_1_the_last_four_dropped() {
    let mut r = from(5000);
    for (start, acked) in [(5000, 5500), (5500, 6000), (6000, 6500), (6500, 7000)] {
        assert_eq!(ack(&mut r, start, start + 500), (acked, vec![]));
    }
}

#[test]
fn rfc_2018_case_2_the_first_dropped() {
    let mut r = from(5000);
    for right in [6000, 6500, 7000, 7500, 8000, 8500, 9000] {
        assert_eq!(ack(&mut r, right - 500, right), (5000, vec![(5500, right)]));
    }
}

#[test]
fn rfc_2018_case_3_every_second_dropped() {
    let mut r = from(5000);
    assert_eq!(ack(&mut r, 5000, 5500), (5500, vec![]));
    assert_eq!(ack(&mut r, 6000, 6500), (5500, vec![(6000, 6500)]));
    assert_eq!(ack(&mut r, 7000, 7500), (5500, vec![(7000, 7500), (6000, 6500)]));
    assert_eq!(ack(&mut r, 8000, 8500), (5500, vec![(8000, 8500), (7000, 7500), (6000, 6500)]));
    // The fourth arrives late, then the second.
    assert_eq!(ack(&mut r, 6500, 7000), (5500, vec![(6000, 7500), (8000, 8500)]));
    assert_eq!(ack(&mut r, 5500, 6000), (7500, vec![(8000, 8500)]));
}

// RFC 2883 §4. The RFC writes segments by their first and last byte.

#[test]
fn rfc_2883_example_1_a_duplicate() {
    let mut r = from(3000);
    assert_eq!(ack(&mut r, 3000, 3500), (3500, vec![]));
    assert_eq!(ack(&mut r, 3500, 4000), (4000, vec![]));
    assert_eq!(ack(&mut r, 3000, 3500), (4000, vec![(3000, 3500)]));
}

#[test]
fn rfc_2883_example_2_out_of_order_and_a_duplicate() {
    let mut r = from(4000);
    assert_eq!(ack(&mut r, 4500, 5000), (4000, vec![(4500, 5000)]));
    assert_eq!(ack(&mut r, 3000, 3500), (4000, vec![(3000, 3500), (4500, 5000)]));
}

#[test]
fn rfc_2883_example_3_a_duplicate_of_what_is_out_of_order() {
    let mut r = from(4000);
    assert_eq!(ack(&mut r, 4500, 5000), (4000, vec![(4500, 5000)]));
    assert_eq!(ack(&mut r, 5000, 5500), (4000, vec![(4500, 5500)]));
    assert_eq!(ack(&mut r, 5000, 5500), (4000, vec![(5000, 5500), (4500, 5500)]));
}

#[test]
fn rfc_2883_example_4_a_duplicate_part() {
    let mut r = from(1000);
    assert_eq!(ack(&mut r, 2000, 2500), (1000, vec![(2000, 2500)]));
    assert_eq!(ack(&mut r, 1000, 1500), (1500, vec![(2000, 2500)]));
    assert_eq!(ack(&mut r, 1000, 2000), (2500, vec![(1000, 1500)]));
}

#[test]
fn rfc_2883_example_5_two_duplicate_parts_acknowledged() {
    let mut r = from(1000);
    assert_eq!(ack(&mut r, 3000, 3500), (1000, vec![(3000, 3500)]));
    assert_eq!(ack(&mut r, 1000, 1500), (1500, vec![(3000, 3500)]));
    assert_eq!(ack(&mut r, 2000, 2500), (1500, vec![(2000, 2500), (3000, 3500)]));
    assert_eq!(ack(&mut r, 1000, 2500), (2500, vec![(1000, 1500), (3000, 3500)]));
}

#[test]
fn rfc_2883_example_6_two_duplicate_parts_not_acknowledged() {
    let mut r = from(1000);
    assert_eq!(ack(&mut r, 3500, 4000), (1000, vec![(3500, 4000)]));
    assert_eq!(ack(&mut r, 1500, 2000), (1000, vec![(1500, 2000), (3500, 4000)]));
    assert_eq!(ack(&mut r, 2500, 3000), (1000, vec![(2500, 3000), (1500, 2000), (3500, 4000)]));
    assert_eq!(ack(&mut r, 1500, 3000), (1000, vec![(1500, 2000), (1500, 3000), (3500, 4000)]));
}

#[test]
fn gaps_filled_are_told() {
    // RFC 5681 §4.2: a segment that fills all or part of a gap is acknowledged at once.
    let mut r = from(1000);
    let told = |r: Received| (r.in_order, r.filled_gap, r.advanced);
    assert_eq!(told(r.receive(1000, 1100)), (true, false, 100));
    assert_eq!(told(r.receive(1500, 1600)), (false, false, 0));
    assert_eq!(told(r.receive(1100, 1200)), (true, true, 100));
    assert_eq!(told(r.receive(1300, 1400)), (false, true, 0));
    assert_eq!(told(r.receive(1550, 1700)), (false, false, 0)); // beyond the highest only
    assert_eq!(told(r.receive(1200, 1300)), (true, true, 200));
    assert_eq!((r.buffered(), r.has_gap()), (200, true));
    assert_eq!(told(r.receive(1400, 1500)), (true, true, 300));
    assert_eq!((r.next(), r.buffered(), r.has_gap()), (1700, 0, false));
}

#[test]
fn fewer_blocks_if_the_options_have_no_room() {
    let mut r = from(10);
    for start in [20, 30, 40] {
        r.receive(start, start + 5);
    }
    let mut out = [(7, 7); MAX_BLOCKS];
    assert_eq!(r.blocks(2, &mut out), 2);
    assert_eq!(out, [(40, 45), (30, 35), (7, 7), (7, 7)]);
}

#[test]
fn old_ranges_are_reported_again_when_newer_ones_are_gone() {
    // RFC 2018 §4: the blocks most recently reported that are not part of an included one.
    let mut r = from(10);
    for n in 1..=20 {
        r.receive(n * 100, n * 100 + 50);
    }
    r.receive(500, 2050);
    assert_eq!(blocks(&r), [(500, 2050), (400, 450), (300, 350), (200, 250)]);
    assert_eq!(ack(&mut r, 10, 450), (450, vec![(100, 150), (500, 2050)]));
}

#[test]
fn nothing_is_allocated_in_order() {
    let mut r = Reassembly::new();
    for n in 0..1000 {
        r.receive(n * 1448, (n + 1) * 1448);
    }
    assert!(r.above.is_none());
    assert!(size_of::<Reassembly>() <= 16);
}

/// Model by bytes: the time when each byte was received last.
#[derive(Default)]
struct Bytes {
    next: usize,
    at: Vec<Option<u64>>,
    received: u64,
}

impl Bytes {
    fn has(&self, byte: usize) -> bool {
        byte < self.next || self.at[byte].is_some()
    }

    fn receive(&mut self, start: usize, end: usize) -> Received {
        self.received += 1;
        let dup = (start..end).find(|&b| self.has(b));
        let duplicate = dup.map(|a| (a as u64, (a..end).find(|&b| !self.has(b)).unwrap_or(end) as u64));
        let top = (0..self.at.len()).rev().find(|&b| self.has(b)).unwrap_or(0);
        let filled_gap = (start..end).any(|b| !self.has(b) && b < top);
        let in_order = !self.has(self.next) && (start..end).contains(&self.next);
        (start..end).for_each(|b| self.at[b] = Some(self.received));
        let before = self.next;
        while self.at.get(self.next).is_some_and(Option::is_some) {
            self.next += 1;
        }
        Received { advanced: (self.next - before) as u64, duplicate, in_order, filled_gap }
    }

    /// Returns every run above `next`, the one received into last first.
    fn blocks(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64, u64)> = Vec::new();
        for b in self.next..self.at.len() {
            let Some(stamp) = self.at[b] else { continue };
            match runs.last_mut().filter(|r| r.2 == b as u64) {
                Some(run) => *run = (run.0.max(stamp), run.1, run.2 + 1),
                None => runs.push((stamp, b as u64, b as u64 + 1)),
            }
        }
        runs.sort_by_key(|r| core::cmp::Reverse(r.0));
        runs.into_iter().map(|(_, start, end)| (start, end)).collect()
    }
}

/// Mostly small lengths, so that there are many ranges; sometimes one that joins many.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![12 => 0usize..7, 1 => 20usize..100]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn as_a_map_of_bytes(segments in proptest::collection::vec((0usize..400, length(), any::<bool>()), 1..200)) {
        let mut model = Bytes { at: vec![None; 500], ..Bytes::default() };
        let mut real = Reassembly::new();
        for (offset, len, next) in segments {
            let start = if next && len % 3 == 0 { model.next.min(400) } else { offset };
            let got = real.receive(start as u64, (start + len) as u64);
            if len == 0 {
                prop_assert_eq!(got, Received::default());
                continue;
            }
            prop_assert_eq!(got, model.receive(start, start + len));
            let runs = model.blocks();
            prop_assert_eq!(real.next(), model.next as u64);
            prop_assert_eq!(real.buffered(), runs.iter().map(|r| r.1 - r.0).sum::<u64>());
            prop_assert_eq!(real.has_gap(), !runs.is_empty());
            prop_assert_eq!(blocks(&real), &runs[..runs.len().min(MAX_BLOCKS)]);
        }
    }
}
