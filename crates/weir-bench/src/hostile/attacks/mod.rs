//! Attacks on rates. Each is played against real gateways side by side, each in a network of its own: token
//! buckets of the kernel, this build, and another build if one is named.
//!
//! An attack begins after 1.5 s, is on for 2.5 s, off for 1 s, on for 1 s, and off again. A limit must hold
//! from one second after the beginning of the attack.

mod case;
mod forge;
mod gateways;
mod judge;
mod site;
mod traffic;

use super::super::figures::verdict;
use super::super::options;
use super::Args;
use case::Case;
use forge::Forger;
use judge::{judge, Got, Shown};
use serde::Serialize;
use site::{Limiter, Site};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::Barrier;
use std::time::Instant;
use traffic::{Bins, Host};

/// Smallest goodput of the neighbour, as a fraction of its goodput on the plain router.
const NEIGHBOUR: f64 = 0.95;

/// Longest pause of a connection, in milliseconds. A SYN and its retransmission may be lost; applications do
/// not wait longer.
const STILL_MS: f64 = 2_000.0;

/// Results of an attack.
#[derive(Debug, Serialize)]
pub struct Row {
    attack: &'static str,
    limit_mbit: f64,
    plain: Shown,
    before: Option<Shown>,
    weir: Shown,
}

impl Row {
    fn holds(&self) -> bool {
        self.weir.holds && share(&self.weir, &self.plain) >= NEIGHBOUR && self.weir.still_ms <= STILL_MS
    }
}

/// Returns the neighbour's goodput as a fraction of that on the plain router.
fn share(shown: &Shown, plain: &Shown) -> f64 {
    shown.neighbour_mbit / plain.neighbour_mbit
}

/// Plays the requested attacks and prints their results.
pub(super) fn run(args: &Args) -> Result<Vec<Row>, String> {
    let cases: Vec<Case> = case::cases().into_iter().filter(|c| args.wants(c.name)).collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    println!(
        "attacks of {:?} on rates, on and off; from a second after the beginning on, the most in a second of the attacker, of the \
         newcomer, the neighbour's part of what it has with token buckets, and the longest pause of a connection\n\
         must hold: at most 1.15 times the rate and 64 kB in any second, the neighbour's part at least {NEIGHBOUR}, no pause of more \
         than {STILL_MS} ms\n",
        case::END
    );
    let before = if args.before.is_some() { "before" } else { "" };
    println!("{:<32} {:>6}  {before:<42}now", "", "Mbit/s");
    let options = options()?;
    let mut rows = Vec::new();
    for case in &cases {
        if options.stop.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        let row = row(case, args, &options.program)?;
        let before = row.before.map_or(String::new(), |before| shown(&before, &row.plain));
        println!(
            "{:<32} {:>6.1}  {before:<42}{:<40}  {}",
            row.attack,
            row.limit_mbit,
            shown(&row.weir, &row.plain),
            verdict(row.holds())
        );
        rows.push(row);
    }
    Ok(rows)
}

fn shown(shown: &Shown, plain: &Shown) -> String {
    format!(
        "{:>7.2} {:>7.2}  {:>5.2}  {:>6.0} ms",
        shown.attacker_mbit,
        shown.newcomer_mbit,
        share(shown, plain),
        shown.still_ms
    )
}

fn row(case: &Case, args: &Args, program: &std::path::Path) -> Result<Row, String> {
    let mut limiters = vec![("p", Limiter::Plain), ("w", Limiter::Weir(program.to_path_buf()))];
    limiters.extend(args.before.clone().map(|before| ("b", Limiter::Weir(before))));
    let at_once = if case.in_turn { 1 } else { limiters.len() };
    let shown: Result<Vec<Vec<Shown>>, String> =
        limiters.chunks(at_once).map(|l| side_by_side(case, l)).collect();
    let shown = shown.map_err(|e| format!("{}: {e}", case.name))?.concat();
    Ok(Row {
        attack: case.name,
        limit_mbit: case.limits[0].rate.bps() as f64 * 1e-6,
        plain: shown[0],
        before: shown.get(2).copied(),
        weir: shown[1],
    })
}

/// Plays an attack against all limiters at the same time, each in a network of its own.
fn side_by_side(case: &Case, limiters: &[(&str, Limiter)]) -> Result<Vec<Shown>, String> {
    let ready = Barrier::new(limiters.len());
    std::thread::scope(|scope| {
        let play = |(name, limiter): &(&str, Limiter)| {
            let site = Site::build(name, case, limiter);
            ready.wait();
            play(&site?, case).map(|got| judge(case, &got))
        };
        let threads: Vec<_> = limiters.iter().map(|limiter| scope.spawn(move || play(limiter))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
    })
}

/// Plays an attack in a network and returns the received traffic.
fn play(site: &Site, case: &Case) -> Result<Got, String> {
    let mut forger = Forger::enter(site)?;
    let listeners: Vec<TcpListener> =
        (0..).zip(case.connections).map(|(n, _)| traffic::listen(site, n)).collect::<Result<_, _>>()?;
    let epoch = Instant::now();
    let connections: Vec<(Bins, Bins)> =
        case.connections.iter().map(|_| (Bins::new(), Bins::new())).collect();
    let datagrams = Bins::new();
    let segments = [(); 2].map(|()| case.connections.iter().map(|_| Bins::new()).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        let mut threads = vec![
            scope.spawn(|| traffic::count_datagrams(site, epoch, &datagrams)),
            scope.spawn(|| traffic::count_segments(&site.servers, Host::Server, epoch, &segments[0])),
            scope.spawn(|| traffic::count_segments(&site.clients, Host::Client, epoch, &segments[1])),
            scope.spawn(|| forger.play(case, epoch).map_err(|e| format!("the attacker: {e}"))),
        ];
        let ends = case.connections.iter().zip(&listeners).zip(&connections).zip(0..);
        for (((connection, listener), (up, down)), number) in ends {
            threads.push(scope.spawn(move || traffic::serve(listener, case, connection, number, epoch, up)));
            threads.push(scope.spawn(move || traffic::ask(site, case, connection, number, epoch, down)));
        }
        threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })?;
    let connections = connections.into_iter().map(|(up, down)| [up.take(), down.take()]).collect();
    let [up, down] = segments.map(|bins| bins.into_iter().map(Bins::take));
    let segments = up.zip(down).map(|(up, down)| [up, down]).collect();
    Ok(Got { connections, segments, datagrams: datagrams.take() })
}
