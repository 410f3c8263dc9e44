//! A gateway whose configuration changes under load.

use super::{id, left_behind, options, root, turn, twice};
use weir::command::bench::reload::{self, Held};

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
        let figure = reload::measure(&options(&name), held, 20)?;
        assert!(!left_behind(&name));
        println!("  {figure:?}");
        assert_eq!(figure.reloads, 20);
        assert_eq!((figure.lost_frames, figure.lost_connections), (0, 0));
        // The rate changes at every reload; an engine that was away lets frames past.
        match figure.error_percent.abs() < 3.0 || figure.passed_stale > 0 {
            true => Ok(()),
            false => Err(format!("{figure:?}")),
        }
    });
}
