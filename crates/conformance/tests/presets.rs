//! The default presets keep the rules of TCP. `weir conformance` puts all presets through them, compiled for
//! speed.

use weir_conformance::{subjects, CASES};

#[test]
fn the_default_preset_passes_every_case() {
    let subjects = subjects();
    let failed: Vec<String> =
        CASES.iter().filter_map(|c| Some(format!("{}: {}", c.name, subjects[0].judge(c).err()?))).collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
