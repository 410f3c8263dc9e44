//! Random experiments: a few links, hosts, classes and flows for one simulated second, from bytes. The keys,
//! and most values, are right, so that most files are accepted; every tenth value or so is at an edge.

use std::fmt::Write;

/// Bytes that decide, one for each choice; when they are used up, all further ones are 0.
pub struct Draws<'a>(pub &'a [u8]);

impl Draws<'_> {
    fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(first)
    }

    /// Happens in `n` of 16 cases.
    fn chance(&mut self, n: usize) -> bool {
        self.byte() % 16 < n
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.byte() % choices.len()]
    }

    /// A line `key = value` in `n` of 16 cases.
    fn line(&mut self, out: &mut String, n: usize, key: &str, values: &[&str]) {
        if self.chance(n) {
            let value = self.of(values);
            let _ = writeln!(out, "{key} = {value}");
        }
    }
}

const RATES: [&str; 10] = [
    "'10Mbit'",
    "'1Mbit'",
    "'100kbit'",
    "'2Mbit'",
    "'5Mbit'",
    "'20Mbit'",
    "'50Mbit'",
    "'333kbit'",
    "'8kbit'",
    "'1Gbit'",
];
const TIMES: [&str; 8] = ["'10ms'", "'1ms'", "'40ms'", "'100us'", "'250ms'", "'7ms'", "'1us'", "'600ms'"];
const SHARES: [&str; 7] = ["0.01", "0.001", "0.1", "0.3", "0", "0.5", "1"];
const QUEUES: [&str; 7] = ["'20p'", "'1bdp'", "'100p'", "'15kB'", "'2p'", "'1p'", "'1000p'"];
const CONTROLS: [&str; 11] =
    ["cubic", "reno", "dctcp", "bbr", "chirp", "newreno", "tahoe", "reno", "cubic", "bbr", "bic"];
const RECOVERIES: [&str; 8] =
    ["'rack'", "'sack'", "'newreno'", "'reno'", "'linux'", "'tahoe'", "'ns2-reno'", "'ns2-tahoe'"];
const CHIRPS: [&str; 4] = ["'adaptive'", "'published'", "'brief'", "'hasty'"];
const PRESETS: [&str; 4] = ["ack-shaper", "ack-shaper-published", "ack-policer", "ack-reconstruct"];
const SHARING: [&str; 6] =
    ["tcr", "postack-basic", "postack", "postack-timer", "postack-pfq", "postack-number"];

/// The text of an experiment.
pub fn experiment(draws: &mut Draws) -> String {
    let mut out = String::from("name = 'random'\nduration = '1s'\n");
    draws.line(&mut out, 4, "interval", &["'100ms'", "'1s'", "'37ms'", "'10ms'"]);
    draws.line(&mut out, 4, "bin", &["'1ms'", "'10ms'", "'100ms'"]);
    let _ = writeln!(out, "seed = {}", draws.byte());
    draws.line(&mut out, 4, "series", &["['cwnd']", "['queue']", "['cwnd', 'acked', 'rtt', 'queue']"]);
    let (clients, servers) = (draws.chance(4), draws.chance(4));
    let gateway = draws.chance(6);
    network(draws, &mut out);
    for (name, side) in [("clients", "lan"), ("servers", "wan")] {
        if if side == "lan" { clients } else { servers } {
            let _ =
                writeln!(out, "[[host]]\nname = '{name}'\nside = '{side}'\ncount = {}", 1 + draws.byte() % 4);
            link(draws, &mut out, 6);
        }
    }
    if gateway {
        classes(draws, &mut out);
    }
    if draws.chance(8) {
        let _ = writeln!(out, "[tcp]");
        tcp(draws, &mut out, 2);
    }
    for n in 0..1 + draws.byte() % 4 {
        flow(draws, &mut out, n, clients, servers);
    }
    out
}

fn network(draws: &mut Draws, out: &mut String) {
    let _ = writeln!(out, "[path]");
    let whole = draws.chance(8);
    if whole {
        draws.line(out, 15, "rtt", &TIMES);
    }
    let mut table = |draws: &mut Draws, name: &str, rates: usize| {
        let _ = writeln!(out, "[path.{name}]");
        link(draws, out, rates);
        if !whole {
            draws.line(out, 8, "delay", &TIMES);
        }
    };
    if draws.chance(3) {
        table(draws, "lan", 8);
    }
    match draws.chance(8) {
        true => table(draws, "wan", 14),
        false => {
            table(draws, "wan.out", 13);
            table(draws, "wan.back", 13);
        }
    }
}

/// Keys of a link, of which it has a rate in `rates` of 16 cases.
fn link(draws: &mut Draws, out: &mut String, rates: usize) {
    if draws.chance(rates) {
        let _ = writeln!(out, "rate = {}", draws.of(&RATES));
        draws.line(out, 10, "queue", &QUEUES);
        draws.line(out, 3, "burst", &["'10kB'", "'1500B'", "'100kB'", "1"]);
        draws.line(out, 4, "overhead", &["0", "14", "18", "38", "256"]);
        discipline(draws, out);
    }
    match draws.byte() % 24 {
        0..4 => draws.line(out, 16, "loss", &SHARES),
        4 => draws.line(out, 16, "loss_every", &["10", "2", "100"]),
        5 => {
            draws.line(out, 16, "loss_p", &SHARES);
            draws.line(out, 16, "loss_r", &["0.25", "1", "0.01"]);
        }
        _ => (),
    }
    if draws.chance(3) {
        let _ = writeln!(out, "jitter = {}", draws.of(&TIMES));
        draws.line(out, 8, "jitter_law", &["'uniform'", "'exponential'", "'normal'", "'pareto'"]);
        draws.line(out, 8, "jitter_order", &["'kept'", "'free'"]);
    }
    if draws.chance(2) {
        let _ = writeln!(out, "reorder = {}\nreorder_by = {}", draws.of(&SHARES[..4]), draws.of(&TIMES));
    }
    draws.line(out, 2, "duplicate", &SHARES);
    draws.line(out, 2, "corrupt", &SHARES);
}

fn discipline(draws: &mut Draws, out: &mut String) {
    match draws.byte() % 12 {
        0 => draws.line(out, 16, "mark", &["'5p'", "'0p'", "'1p'", "'3kB'"]),
        n @ 1..5 => {
            let _ = writeln!(out, "aqm = '{}'", ["codel", "fq-codel", "red", "dualpi2"][n - 1]);
            if n < 4 {
                draws.line(out, 8, "ecn", &["true", "false"]);
            }
            match n {
                1 | 2 => draws.line(out, 4, "target", &TIMES),
                3 => draws.line(out, 4, "red_min", &["'5p'", "'1p'", "'20p'"]),
                _ => draws.line(out, 4, "step", &TIMES),
            }
            if n == 2 {
                draws.line(out, 4, "flows", &["1", "2", "1024"]);
                draws.line(out, 4, "quantum", &["1514", "300", "64"]);
            }
        }
        5 => draws.line(
            out,
            16,
            "ack_filter",
            &[
                "'delayed-per-flow'",
                "'delayed'",
                "'classical'",
                "'none'",
                "{ policy = 'static', threshold = 2 }",
            ],
        ),
        _ => (),
    }
}

/// Classes that control ACKs, that have queues, or both.
fn classes(draws: &mut Draws, out: &mut String) {
    if draws.chance(3) {
        let _ = writeln!(out, "[gateway]\nline = '1Gbit'");
    }
    let below = draws.chance(5);
    if below {
        let _ = writeln!(out, "[[gateway.class]]\nname = 'root'\nrate = {}", draws.of(&RATES));
    }
    for n in 0..1 + draws.byte() % 3 {
        let uploads = below || draws.chance(11);
        let port = 5001 + (draws.byte() % 2 + 2 * n) % 4;
        let (way, key) = if uploads { ("out", "dst_port") } else { ("in", "src_port") };
        let _ = writeln!(out, "[[gateway.class]]\nname = 'c{n}'\ndirection = '{way}'");
        match (n, draws.byte() % 4) {
            (0, 0) => drop(writeln!(out, "match = [{{ protocol = 'tcp' }}]")),
            _ => drop(writeln!(out, "match = [{{ {key} = {port} }}]")),
        }
        match draws.byte() % 4 {
            _ if below => {
                let _ = writeln!(out, "parent = 'root'\nqueue = '50p'\nrate = '100kbit'");
                draws.line(out, 4, "priority", &["0", "1", "7"]);
                draws.line(out, 4, "weight", &["1", "10"]);
                draws.line(out, 4, "ceil", &RATES[..2]);
            }
            0 | 1 => {
                let _ = write!(
                    out,
                    "ack = {{ preset = '{}', flow_rate = {}",
                    draws.of(&PRESETS),
                    draws.of(&RATES)
                );
                if draws.chance(3) {
                    let _ = write!(out, ", standing_delay = {}", draws.of(&TIMES));
                }
                let _ = writeln!(out, " }}");
            }
            2 => {
                let _ = writeln!(out, "rate = {}", draws.of(&RATES));
                let _ = writeln!(out, "queue = {}", draws.of(&["'50p'", "'5p'", "'20kB'"]));
                draws.line(out, 3, "pace", &["'gap'", "'clock'"]);
                draws.line(out, 4, "discipline", &["'pfq'", "'fifo'"]);
                draws.line(out, 4, "aqm", &["'codel'", "'codel'", "'red'"]);
            }
            _ => {
                let _ = writeln!(out, "rate = {}", draws.of(&RATES));
                if draws.chance(6) {
                    let preset = draws.of(&SHARING);
                    let discipline =
                        if ["postack", "postack-timer"].contains(&preset) { "fifo" } else { "pfq" };
                    let _ = writeln!(
                        out,
                        "discipline = '{discipline}'\nqueue = '100p'\nack = {{ preset = '{preset}' }}"
                    );
                } else {
                    draws.line(out, 4, "flow_max", &RATES[..2]);
                    draws.line(out, 3, "flow_min", &["'8kbit'"]);
                    draws.line(out, 4, "unresponsive", &["'bound'", "'fair'", "'police'", "'count'"]);
                }
            }
        }
    }
}

/// Keys of TCP, each in `n` of 16 cases.
fn tcp(draws: &mut Draws, out: &mut String, n: usize) {
    if draws.chance(8) {
        let _ = writeln!(out, "cc = '{}'", draws.of(&CONTROLS));
    }
    draws.line(out, n, "mss", &["1448", "536", "88", "8948"]);
    draws.line(out, n, "rwnd", &["'64KiB'", "'4MiB'", "'4KiB'", "'1MiB'"]);
    draws.line(out, n, "ecn", &["true", "false"]);
    draws.line(out, n, "l4s", &["true", "false"]);
    draws.line(out, n, "delayed_ack", &["1", "2", "4"]);
    draws.line(out, n, "delayed_ack_timer", &TIMES);
    draws.line(out, n, "quick_acks", &["0", "16", "1"]);
    draws.line(out, n, "push_acks", &["true", "false"]);
    draws.line(out, n, "initial_window", &["1", "2", "10", "100"]);
    draws.line(out, n, "initial_ssthresh", &["2", "10", "100"]);
    draws.line(out, n + 2, "recovery", &RECOVERIES);
    draws.line(out, n, "cubic", &["'linux'", "'rfc9438'"]);
    draws.line(out, n, "chirp", &CHIRPS);
    draws.line(out, n, "fast_convergence", &["true", "false"]);
    draws.line(out, n, "fast_open", &["true", "false"]);
    draws.line(out, n, "timestamps", &["true", "false"]);
    draws.line(out, n, "min_rto", &["'1s'", "'200ms'", "'1ms'"]);
    draws.line(out, n, "abc", &["true", "false"]);
    draws.line(out, n, "hystart", &["true", "false"]);
    draws.line(out, n, "pacing", &["true", "false"]);
    draws.line(out, n, "nagle", &["true", "false"]);
    draws.line(out, n, "tso_segments", &["1", "4", "64"]);
    draws.line(out, n, "opaque", &["true", "false"]);
}

const SIZES: [&str; 7] = [
    "'100kB'",
    "1",
    "'10kB'",
    "'1MB'",
    "1448",
    "{ uniform = ['1kB', '50kB'] }",
    "{ pareto = '5kB', shape = 1.2, max = '1MB' }",
];

fn flow(draws: &mut Draws, out: &mut String, n: usize, clients: bool, servers: bool) {
    let _ = writeln!(out, "[[flow]]\nid = 'f{n}'");
    draws.line(out, 5, "direction", &["'in'", "'out'"]);
    draws.line(out, 4, "start", &["'100ms'", "'500ms'", "'990ms'", "'1us'"]);
    if clients && draws.chance(10) {
        let _ = writeln!(out, "client = 'clients'");
    }
    if servers && draws.chance(10) {
        let _ = writeln!(out, "server = 'servers'");
    }
    if draws.chance(4) {
        datagrams(draws, out);
        return;
    }
    match draws.byte() % 8 {
        0 => {
            let _ = writeln!(out, "arrivals = {{ poisson = {} }}", draws.of(&["'20/s'", "'1/s'", "'200/s'"]));
            let _ = writeln!(out, "bytes = {}", draws.of(&SIZES));
        }
        1 => {
            let _ = writeln!(out, "sources = 2\ncount = {}", draws.of(&[2, 10, 50]));
            let _ = writeln!(out, "bytes = {}", draws.of(&SIZES));
            draws.line(out, 8, "think", &["'1ms'", "'1us'", "{ uniform = ['1us', '50ms'] }"]);
        }
        k => {
            draws.line(out, 6, "count", &["2", "3", "8"]);
            draws.line(out, 4, "stagger", &["'10ms'", "'0s'", "'1us'"]);
            match k {
                2 | 3 => drop(writeln!(out, "bytes = {}", draws.of(&SIZES))),
                4 => draws.line(out, 16, "duration", &["'500ms'", "'10ms'", "'1us'"]),
                5 => drop(writeln!(out, "burst = '20kB'\npause = {}", draws.of(&TIMES))),
                6 => draws.line(out, 12, "app_rate", &RATES),
                _ => (),
            }
        }
    }
    tcp(draws, out, 2);
}

fn datagrams(draws: &mut Draws, out: &mut String) {
    let _ = writeln!(
        out,
        "protocol = 'udp'\nrate = {}",
        draws.of(&["'1Mbit'", "'100kbit'", "'333kbit'", "'2Mbit'", "'8kbit'"])
    );
    draws.line(out, 8, "datagram", &["1472", "1", "8", "200"]);
    match draws.byte() % 4 {
        0 => drop(writeln!(out, "bytes = {}", draws.of(&SIZES[..5]))),
        1 => draws.line(out, 16, "duration", &["'500ms'", "'10ms'"]),
        _ => (),
    }
    if draws.chance(3) {
        draws.line(out, 16, "on", &["'100ms'", "{ exponential = '50ms' }", "'1us'"]);
        draws.line(out, 16, "off", &["'100ms'", "{ uniform = ['1ms', '1s'] }", "'1us'"]);
    }
}
