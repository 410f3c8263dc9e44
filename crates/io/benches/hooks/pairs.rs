//! Two builds of the programs in turn, row by row.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, Stdio};

/// Runs of each of them.
const PAIRS: usize = 10;

/// Nanoseconds of each row, in the order of the table.
type Rows = Vec<(String, f64)>;

fn rows_of(program: &str, only: &str) -> Result<Rows, Box<dyn Error>> {
    let output = Command::new(program).arg(only).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{program}: {}", output.status).into());
    }
    let row =
        |line: &str| line.split_once('\t').and_then(|(name, ns)| Some((name.to_string(), ns.parse().ok()?)));
    Ok(String::from_utf8(output.stdout)?.lines().filter_map(row).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// Prints medians of what both take, and of the ratios to `before`, pair by pair, with their range.
pub fn run(before: &str, only: &str) -> Result<(), Box<dyn Error>> {
    let this = std::env::current_exe()?.to_string_lossy().into_owned();
    let mut names = Vec::new();
    let mut all: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for pair in 0..PAIRS {
        let (old, new): (BTreeMap<_, _>, Rows) =
            (rows_of(before, only)?.into_iter().collect(), rows_of(&this, only)?);
        if pair == 0 {
            names = new.iter().map(|(name, _)| name.clone()).collect();
        }
        for (name, ns) in new {
            if let Some(&was) = old.get(&name) {
                all.entry(name).or_default().push((was, ns));
            }
        }
    }
    println!("{:<66} {:>8} {:>8}  ratio", "ns per packet; medians of pairs", "before", "now");
    for name in names {
        let Some(pairs) = all.get(&name) else { continue };
        let of = |value: fn(&(f64, f64)) -> f64| pairs.iter().map(value).collect::<Vec<_>>();
        let ratios = of(|(was, is)| is / was);
        let (least, most) = ratios.iter().fold((f64::MAX, 0.0f64), |(a, b), &r| (a.min(r), b.max(r)));
        println!(
            "{name:<66} {:>8.1} {:>8.1}  {:.2} ({least:.2} to {most:.2})",
            median(of(|p| p.0)),
            median(of(|p| p.1)),
            median(ratios)
        );
    }
    Ok(())
}
