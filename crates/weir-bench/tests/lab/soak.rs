//! A gateway that everything happens to.

use super::{holds, id, judged, left_behind, options, root, turn};
use weir_bench::soak;
use weir_core::time::Duration;

/// Each event once: what is conserved is, and nothing is left behind. How much memory is used, and how exact
/// rates are, takes longer to tell (`weir-bench soak`).
#[test]
fn nothing_is_lost_whatever_happens() {
    if !root() {
        return;
    }
    let _turn = turn();
    let name = id("soak");
    judged("everything happens", || {
        let figure = soak::measure(&options(&name), 26, Duration::from_secs(2))?;
        assert!(!left_behind(&name));
        println!("  {figure:?}");
        let once = soak::Event::ALL.iter().all(|event| figure.events.contains_key(event));
        holds(once && figure.is_conserved() && figure.left.is_empty(), figure)
    });
}
