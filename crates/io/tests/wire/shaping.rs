//! Traffic of the hosts under a gateway that controls their flows.

use crate::lab::{eventually, Kind, Lab, SERVER, SERVER6};
use crate::tests::ends_well;

pub const ALL: &[(&str, fn())] = &[
    ("a_gateway_shapes_uploads_and_downloads", a_gateway_shapes_uploads_and_downloads),
    ("datagrams_are_charged_to_their_class", datagrams_are_charged_to_their_class),
    ("datagrams_beyond_the_rate_are_dropped_if_told_so", datagrams_beyond_the_rate_are_dropped_if_told_so),
    ("acks_pass_where_the_rate_does_not_bind", acks_pass_where_the_rate_does_not_bind),
];

/// Uploads and downloads at rates above what flows reach: ACKs pass by grants, and nothing is refused or sent
/// again for it.
fn acks_pass_where_the_rate_does_not_bind() {
    let lab = Lab::new(Kind::Router);
    let mut weir = lab.running_with("gateway", &[("SHAPE_KBIT", "40000000")]);
    let _server = lab.serve();
    let mut before = 0;
    for upload in [true, false] {
        let rate = if upload { lab.send("c", SERVER, 2000) } else { lab.receive("c", SERVER, 2000) };
        eventually("ACKs pass", || lab.stat("hook_granted") > before + 10);
        before = lab.stat("hook_granted");
        println!("  {:.2} Gb/s, {before} granted, {} taken", rate / 1e9, lab.stat("hook_taken"));
        assert!(rate > 1e8, "{rate}");
    }
    ends_well(&lab, &mut weir);
    let stats = lab.stats();
    assert_eq!((stats["hook_failed"], stats["refused0"]), (0, 0), "{stats:?}");
}

/// Uploads and downloads at their rate through whatever the box is, IPv4 and IPv6, with data in the kernel.
fn a_gateway_shapes_uploads_and_downloads() {
    for kind in [Kind::Router, Kind::Bridge, Kind::Masquerade] {
        let lab = Lab::new(kind);
        let mut gateway = lab.running("gateway");
        let _server = lab.serve();
        let mut rates = Vec::new();
        for to in [SERVER, SERVER6].into_iter().filter(|to| kind != Kind::Masquerade || *to == SERVER) {
            rates.push(lab.send("c", to, 3000));
            rates.push(lab.receive("c", to, 3000));
        }
        println!(
            "  {kind:?} {:.2?} Mb/s, {:?}",
            rates.iter().map(|r| r / 1e6).collect::<Vec<_>>(),
            lab.stats()
        );
        assert_eq!(lab.ask("c", SERVER, 20), 20);
        for rate in rates {
            // What the client wrote is not all sent, and what was on its way before the first hold is more.
            assert!((15e6..30e6).contains(&rate), "{rate}");
        }
        ends_well(&lab, &mut gateway);
    }
}

/// Uploads share 8 Mb/s, of which datagrams take a half: the rest is left for TCP.
fn datagrams_are_charged_to_their_class() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running_with("gateway", &[("SHARE_KBIT", "8000")]);
    let _server = lab.serve();
    let before = lab.stat("others");
    let (sent, rate) = std::thread::scope(|scope| {
        let sent = scope.spawn(|| lab.host("c", &["datagrams", SERVER, "4000", "5000"]));
        let rate = lab.send("c", SERVER, 4500);
        (sent.join().unwrap().trim().parse::<u64>().unwrap(), rate)
    });
    eventually("all of them are counted", || lab.stat("others") >= before + sent);
    println!("  {sent} datagrams, TCP {:.2} Mb/s, {:?}", rate / 1e6, lab.stats());
    // Of 1,028 bytes each.
    assert!(lab.stat("others") - before < sent + 20 && lab.stat("others_bytes") > 1_028 * sent, "{sent}");
    assert_eq!(lab.stat("dropped"), 0);
    // Uncounted, TCP would have 8 Mb/s.
    assert!((3e6..5.5e6).contains(&rate), "{rate}");
    ends_well(&lab, &mut gateway);
}

/// Uploads share 2 Mb/s, and datagrams come at 8.
fn datagrams_beyond_the_rate_are_dropped_if_told_so() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running_with("gateway", &[("SHARE_KBIT", "2000"), ("POLICE", "1")]);
    let _server = lab.serve();
    let before = lab.stat("others") + lab.stat("dropped");
    let sent: u64 = lab.host("c", &["datagrams", SERVER, "8000", "3000"]).trim().parse().unwrap();
    eventually("all of them are counted", || lab.stat("others") + lab.stat("dropped") >= before + sent);
    let passed = lab.stat("others") - before;
    println!("  {passed} of {sent} datagrams passed");
    // 2 Mb/s for 3 s are 750 of them, and 5 are a burst.
    assert!((700..900).contains(&passed), "{passed} of {sent}");
    ends_well(&lab, &mut gateway);
}
