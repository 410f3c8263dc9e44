//! Benchmarks in the lab, which hold with few turns too. They need root; without it each test says so and
//! passes.

mod reload;
#[path = "../../../weir/tests/lab/rig.rs"]
mod rig;
mod soak;

use rig::{holds, id, judged, left_behind, root, turn};
use weir::execute::lab::Options;

fn options(id: &str) -> Options {
    let program = weir_bench::beside(env!("CARGO_BIN_EXE_weir-bench").as_ref()).unwrap();
    rig::options(id, program.to_str().unwrap())
}
