//! Limits of repetition: lines of one kind in a minute. A process that is restarted each second repeats the
//! lines of the one before it, so the limits hold for the lines of all processes together.

use super::line;
use std::hash::Hasher;
use weir_core::time::{Duration, Time};

/// Most lines of one kind that are copied within [`WINDOW`].
const MOST: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);
/// Most kinds that are remembered.
const KINDS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Kind {
    hash: u64,
    since: Time,
    lines: u32,
}

/// Kinds of lines in their current minute. Lines are of one kind if they differ only in digits.
#[derive(Debug)]
pub struct Repeats([Kind; KINDS]);

/// Decision about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// The line is copied, after this many of its kind were left out.
    After(u32),
    /// The line is left out: there were too many of its kind.
    Not,
}

impl Repeats {
    pub fn new() -> Repeats {
        Repeats([Kind { hash: 0, since: Time::ZERO, lines: 0 }; KINDS])
    }

    /// Decides about a line that comes at `now`.
    pub fn come(&mut self, text: &str, now: Time) -> Copied {
        let hash = kind(text);
        let known = self.0.iter().position(|kind| kind.lines > 0 && kind.hash == hash);
        let oldest = || (0..KINDS).min_by_key(|&i| (self.0[i].lines > 0, self.0[i].since)).unwrap_or(0);
        let place = known.unwrap_or_else(oldest);
        let kind = &mut self.0[place];
        if known.is_none() || now.since(kind.since) >= WINDOW {
            let left_out = if known.is_some() { kind.lines.saturating_sub(MOST) } else { 0 };
            *kind = Kind { hash, since: now, lines: 1 };
            return Copied::After(left_out);
        }
        kind.lines = kind.lines.saturating_add(1);
        if kind.lines > MOST {
            Copied::Not
        } else {
            Copied::After(0)
        }
    }
}

/// Hashes a line's text without its time and digits.
fn kind(text: &str) -> u64 {
    // The key is fixed: an author of texts that collide only hides lines of the same origin.
    let mut hasher = std::hash::DefaultHasher::new();
    line::parts(text).1.bytes().filter(|byte| !byte.is_ascii_digit()).for_each(|byte| hasher.write_u8(byte));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_thirty_lines_a_minute_and_none_is_forgotten() {
        let mut repeats = Repeats::new();
        let mut at = |second, n: u32| {
            repeats.come(&format!("2026-01-01T00:00:{n}Z  WARN pid={n}\n"), Time::from_secs(second))
        };
        let copied = (0..100).filter(|n| at(100, *n) == Copied::After(0)).count();
        assert_eq!(copied, 30);
        assert_eq!(at(159, 1), Copied::Not);
        assert_eq!(at(160, 1), Copied::After(71));
        assert_eq!(at(161, 1), Copied::After(0));
    }

    #[test]
    fn other_kinds_are_not_counted_with_it() {
        let mut repeats = Repeats::new();
        let letters = |n: u32| char::from_u32(0x3b1 + n).unwrap_or('x');
        for n in 0..1_000 {
            assert_eq!(repeats.come(&format!("{}\n", letters(n)), Time::from_secs(1)), Copied::After(0));
        }
    }
}
