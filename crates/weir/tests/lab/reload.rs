//! A gateway whose configuration changes under load.

use super::{id, left_behind, longest_stall, options, root, turn, twice};
use std::time::Duration;
use weir::command::bench::reload::{self, Held};

/// A machine that stands still for longer shows nothing of rates.
const STALL: Duration = Duration::from_millis(20);

#[test]
fn reloads_under_load_lose_nothing() {
    lose_nothing(Held::Acks);
}

#[test]
fn reloads_of_queues_under_load_lose_nothing() {
    lose_nothing(Held::Queues);
}

fn lose_nothing(held: Held) {
    if !root() {
        return;
    }
    let _turn = turn();
    let name = id("reload");
    twice("reloads under load", || {
        let (figure, stall) = longest_stall(|| reload::measure(&options(&name), held, 20));
        let figure = figure?;
        assert!(!left_behind(&name));
        println!("  {figure:?}");
        assert_eq!(figure.reloads, 20);
        assert_eq!((figure.lost_frames, figure.lost_connections), (0, 0));
        // The rate changes at every reload; an engine that was away lets frames past, and one that had no time is late.
        if figure.passed_stale > 0 || stall > STALL {
            println!("  NOT JUDGED: the machine stood still for {stall:?}");
            return Ok(());
        }
        match figure.error_percent.abs() < 3.0 {
            true => Ok(()),
            false => Err(format!("{figure:?}")),
        }
    });
}
