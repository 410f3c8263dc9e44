//! A gateway whose configuration changes under load.

use super::{holds, id, judged, left_behind, options, root, turn};
use weir_bench::reload::{self, Held};

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
    judged("reloads under load", || {
        let figure = reload::measure(&options(&name), held, 20)?;
        assert!(!left_behind(&name));
        println!("  {figure:?}");
        // The rate changes at every reload.
        let whole = figure.reloads == 20 && figure.is_whole();
        holds(whole && figure.error_percent.abs() < 3.0, figure)
    });
}
