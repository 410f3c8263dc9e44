//! Throughput when every frame that leaves by the box's interface passes user space, compared with the plain
//! box, and the throughput of the other direction meanwhile.

use super::figures::{verdict, Spread};
use super::{goodput, group, measure, options, plan, write, Common};
use serde::Serialize;
use weir::execute::lab::OnBox;
use weir::experiment::plan::{BoxKind, Path};
use weir_core::gateway::Direction;

const SECONDS: u64 = 3;
/// Numbers of flows.
const CASES: [u32; 3] = [1, 4, 8];
/// Required ratios to the plain box, for the direction through user space and for the other one.
const TAKEN: f64 = 0.5;
const OTHER: f64 = 0.95;

#[derive(Debug, Serialize)]
struct Row {
    direction: &'static str,
    flows: u32,
    plain_bps: Vec<f64>,
    taken_bps: Vec<f64>,
    ratio: Spread,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "uploads through user space and back on a masquerading router's interface, {seconds} s; {} turns\n\
         must hold: uploads at least {TAKEN} of the plain box, downloads, which pass in the kernel, at least {OTHER}\n",
        common.runs
    );
    println!("{:<10} {:>5}  {:>10}  {:>10}  ratio", "", "flows", "plain Gb/s", "taken Gb/s");
    let mut rows = Vec::new();
    for (direction, name, bound) in [(Direction::Out, "uploads", TAKEN), (Direction::In, "downloads", OTHER)]
    {
        for flows in CASES {
            let row = row(common, seconds, direction, name, flows)?;
            println!(
                "{name:<10} {flows:>5}  {:>10.2}  {:>10.2}  {:<24.2} {}",
                Spread::of(row.plain_bps.clone()).median / 1e9,
                Spread::of(row.taken_bps.clone()).median / 1e9,
                row.ratio,
                verdict(row.ratio.median >= bound)
            );
            rows.push(row);
        }
    }
    write(common, &rows)
}

fn row(
    common: &Common,
    seconds: u64,
    direction: Direction,
    name: &'static str,
    flows: u32,
) -> Result<Row, String> {
    let (mut plain_bps, mut taken_bps) = (vec![], vec![]);
    for _ in 0..common.runs {
        plain_bps.push(once(seconds, direction, flows, OnBox::Gateway)?);
        taken_bps.push(once(seconds, direction, flows, OnBox::Emulator)?);
    }
    let ratio = Spread::ratio(&taken_bps, &plain_bps);
    Ok(Row { direction: name, flows, plain_bps, taken_bps, ratio })
}

fn once(seconds: u64, direction: Direction, flows: u32, on_box: OnBox) -> Result<f64, String> {
    let mut plan = plan("all", Path::default(), seconds, flows);
    plan.lab.kind = BoxKind::Nat;
    plan.groups = vec![group("flow", direction, flows, 5001)];
    let mut options = options()?;
    options.on_box = on_box;
    let outcome = measure(&plan, &options)?;
    Ok(goodput(&outcome, &plan, direction))
}
