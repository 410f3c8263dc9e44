//! Mark and priority of what a host sends, as its queueing discipline sees them behind Weir.

use crate::lab::{eventually, Kind, Lab, SERVER};
use crate::tests::ends_well;

pub const ALL: &[(&str, fn())] = &[
    ("frames_keep_mark_and_priority", frames_keep_mark_and_priority),
    ("made_acks_have_mark_and_priority_of_the_receivers", made_acks_have_mark_and_priority_of_the_receivers),
    ("frames_leave_at_their_departure_time", frames_leave_at_their_departure_time),
];

/// A datagram of the box that departs later waits as it would in fq, which this interface does not have.
fn frames_leave_at_their_departure_time() {
    let lab = Lab::new(Kind::Router);
    let _server = lab.serve();
    let after = |ahead: &str| lab.host("g", &["scheduled", SERVER, ahead]).trim().parse::<u64>().unwrap();
    assert!(after("300") < 300);
    let mut weir = lab.running("all");
    let times = ["300", "0"].map(after);
    println!("  {times:?} ms");
    assert!((300..3000).contains(&times[0]) && times[1] < 300, "{times:?}");
    ends_well(&lab, &mut weir);
}

/// Properties by which a discipline tells frames apart.
#[derive(Clone, Copy, Debug)]
enum By {
    Priority,
    Mark,
}

/// Puts a discipline on the box's interface that sends frames with the mark and priority of [`crate::hosts`]
/// by a class of their own.
fn tell_apart(lab: &Lab, by: By) {
    let tc = |args: &str| lab.run("g", "tc", &args.split(' ').collect::<Vec<_>>());
    // A priority that is the number of a class selects it.
    let handle = if matches!(by, By::Priority) { "1" } else { "2" };
    tc(&format!("qdisc replace dev wan0 root handle {handle}: htb default 1"));
    for class in ["1", "5"] {
        tc(&format!("class add dev wan0 parent {handle}: classid {handle}:{class} htb rate 10gbit"));
    }
    if matches!(by, By::Mark) {
        // Loads the mark, and returns whether it is 6.
        let program = "4,32 0 0 4294963220,21 0 1 6,6 0 0 4294967295,6 0 0 0";
        let filter = ["filter", "add", "dev", "wan0", "parent", "2:", "protocol", "all", "bpf", "bytecode"];
        lab.run("g", "tc", &[filter.as_slice(), &[program, "flowid", "2:5"]].concat());
    }
}

/// Packets of the class of their own, and of all others.
fn counted(lab: &Lab) -> [u64; 2] {
    let text = lab.run("g", "tc", &["-s", "class", "show", "dev", "wan0"]);
    let of = |class: &str| {
        let from = text.find(&format!(":{class} ")).expect("the class is there");
        let words: Vec<&str> = text[from..].split_whitespace().collect();
        let at = words.iter().position(|word| *word == "pkt").expect("packets are counted");
        words[at - 1].parse().unwrap()
    };
    [of("5"), of("1")]
}

/// Datagrams of the box itself through all steering, with a delay and without one.
fn frames_keep_mark_and_priority() {
    for by in [By::Priority, By::Mark] {
        let lab = Lab::new(Kind::Router);
        let _server = lab.serve();
        tell_apart(&lab, by);
        let mut weir = lab.running_with("all", &[("BUMP_DELAY_US", "5000")]);
        assert_eq!(lab.pings("g", SERVER, 10, 2).0, 10);
        let before = counted(&lab);
        lab.host("g", &["marked", SERVER, "100"]);
        eventually("all have left", || counted(&lab)[0] - before[0] >= 100);
        let after = counted(&lab);
        println!("  {by:?}: {before:?}, then {after:?}");
        assert_eq!(after[0] - before[0], 100);
        // Others have none of it.
        assert_eq!(before[0], 0);
        assert!(before[1] >= 10, "{before:?}");
        ends_well(&lab, &mut weir);
    }
}

/// A download of the box whose socket has a mark and a priority: no ACK leaves without.
fn made_acks_have_mark_and_priority_of_the_receivers() {
    for by in [By::Priority, By::Mark] {
        let lab = Lab::new(Kind::Router);
        let _server = lab.serve();
        tell_apart(&lab, by);
        let mut weir = lab.running_with("gateway", &[("SHAPE_KBIT", "20000")]);
        lab.pings("g", SERVER, 1, 0);
        let before = counted(&lab);
        lab.host("g", &["receive-marked", SERVER, "1500"]);
        let (after, stamped) = (counted(&lab), lab.stat("hook_stamped"));
        println!("  {by:?}: {before:?}, then {after:?}; {stamped} made");
        assert!(stamped > 100 && after[0] - before[0] >= stamped, "{after:?}");
        // Neighbours are looked for, and the way is tried.
        assert!(after[1] - before[1] < 10, "{before:?} {after:?}");
        ends_well(&lab, &mut weir);
    }
}
