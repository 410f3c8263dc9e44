//! Networks of nodes and links, with routes, shares and gateways calculated by hand.

use super::tests::{link, simulate};
use crate::result::RunResult;

/// Three routers in a row with links of 8 Mbit/s and 10 ms each. Rates count IP bytes.
const CHAIN: &str = "
    [[node]]
    name = 'r1'
    [[node]]
    name = 'r2'
    [[node]]
    name = 'r3'
    [[link]]
    ends = ['r1', 'r2']
    rate = '8Mbit'
    delay = '10ms'
    overhead = 0
    [[link]]
    ends = ['r2', 'r3']
    rate = '8Mbit'
    delay = '10ms'
    overhead = 0
    [[host]]
    name = 'a'
    at = 'r1'
    [[host]]
    name = 'b'
    at = 'r2'
    [[host]]
    name = 'c'
    at = 'r3'\n";

fn goodput(r: &RunResult, id: &str) -> f64 {
    r.flows.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no {id}")).goodput_bps
}

#[test]
fn a_chain_by_hand() {
    let text = format!(
        "name = 't'\nduration = '1s'\n{CHAIN}
        [[flow]]\nid = 'far'\nclient = 'a'\nserver = 'c'\ncc = 'reno'\nbytes = 960\nmss = 960\ntimestamps = false
        [[flow]]\nid = 'near'\nclient = 'c'\nserver = 'b'\ncc = 'reno'\nbytes = 960\nmss = 960\ntimestamps = false\nstart = '500ms'"
    );
    let r = simulate(&text);
    // A SYN of 52 bytes takes 52 us on each link, like the SYN-ACK. The following ACK takes 40 us, and the
    // segment of 1000 bytes 1 ms. Over two links: 2 × (2 × 10,052) + 40 + 2 × (1000 + 10,000). The ACK delays
    // the segment on the first link only.
    let fct: Vec<u64> = r.flows.iter().map(|f| (f.fct_s.unwrap() * 1e6).round() as u64).collect();
    assert_eq!(fct, [40_208 + 40 + 22_000, 20_104 + 40 + 11_000]);
    let names: Vec<&str> = r.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["r1-r2.out", "r1-r2.back", "r2-r3.out", "r2-r3.back"]);
    // One way: SYN, ACK, data with FIN, and the last ACK. The other way: SYN-ACK and FIN. `near` goes from r3
    // to r2.
    let packets: Vec<u64> = r.links.iter().map(|l| l.packets).collect();
    assert_eq!(packets, [4, 2, 4 + 2, 2 + 4]);
}

#[test]
fn frames_take_the_shortest_way_and_no_other() {
    // A ring of five with a short cut: a to d by n5, not by n2 and n3; a to c by n2.
    let r = simulate(
        "name = 't'\nduration = '1s'
        node = [{ name = 'n1' }, { name = 'n2' }, { name = 'n3' }, { name = 'n4' }, { name = 'n5' }]
        link = [{ ends = ['n1', 'n2'] }, { ends = ['n2', 'n3'] }, { ends = ['n3', 'n4'] }, { ends = ['n4', 'n5'] },
            { name = 'last', ends = ['n5', 'n1'], delay = '1ms', back = { loss_every = 1 } }]
        host = [{ name = 'a', at = 'n1' }, { name = 'c', at = 'n3', count = 2, delay = '1ms' }, { name = 'd', at = 'n4' }]
        [[flow]]\nid = 'u'\nprotocol = 'udp'\nclient = 'd'\nserver = 'a'\nrate = '800kbit'\ndatagram = 100
        [[flow]]\nid = 'v'\nprotocol = 'udp'\nclient = 'a'\nserver = 'c'\ncount = 2\nrate = '80kbit'\ndatagram = 100
        [[flow]]\nid = 'w'\nprotocol = 'udp'\nclient = 'a'\nserver = 'd'\nrate = '80kbit'\ndatagram = 100",
    );
    let packets = |name: &str| link(&r, name).packets;
    let out = ["n1-n2.out", "n2-n3.out", "n3-n4.out", "n4-n5.out", "last.out"].map(packets);
    let back = ["n1-n2.back", "n2-n3.back", "n3-n4.back", "n4-n5.back", "last.back"].map(packets);
    // There are 1000 datagrams a second, and 100 of each of the other flows. Those that return on the last
    // link are lost.
    assert_eq!((out, back), ([200, 200, 0, 1000, 1000], [0, 0, 0, 0, 0]));
    assert_eq!(link(&r, "last.back").drops.get("periodic_loss"), Some(&100));
    assert_eq!((packets("c.0.down"), packets("c.1.down"), packets("c.0.up")), (100, 100, 0));
    let loss: Vec<Option<f64>> = r.flows.iter().map(|f| f.loss).collect();
    assert_eq!(loss, [Some(0.0), Some(0.0), Some(0.0), Some(1.0)]);
}

/// Datagrams both ways between two hosts with one address each, one behind a link of its own, and of each to
/// itself, beside TCP.
#[test]
fn flows_of_all_kinds_go_to_their_hosts() {
    let flow = |id: &str, kind: &str, ends: (&str, &str)| {
        let (client, server) = ends;
        format!("[[flow]]\nid = '{id}'\n{kind}\nclient = '{client}'\nserver = '{server}'\n")
    };
    let udp = |bytes: u64| format!("protocol = 'udp'\nrate = '800kbit'\ndatagram = 1000\nbytes = {bytes}");
    let flows = [
        flow("there", &udp(50_000), ("a", "d")),
        flow("back", &udp(60_000), ("d", "a")),
        flow("in", &format!("{}\ncount = 2\ndirection = 'in'", udp(70_000)), ("a", "d")),
        flow("own", &udp(80_000), ("a", "a")),
        flow("tcp", "bytes = 100000", ("a", "d")),
        flow("quic", "protocol = 'quic'\nbytes = 110000", ("d", "a")),
    ];
    let r = simulate(&format!(
        "name = 't'\nduration = '3s'\n{CHAIN}
        [[host]]\nname = 'd'\nat = 'r3'\ndelay = '1ms'\n{}",
        flows.concat()
    ));
    let bytes: Vec<u64> = r.flows.iter().map(|f| f.bytes).collect();
    assert_eq!(bytes, [50_000, 60_000, 70_000, 70_000, 80_000, 100_000, 110_000]);
    assert!(r.flows[..5].iter().all(|f| f.loss == Some(0.0)), "{:?}", r.flows);
}

#[test]
fn what_crosses_every_link_leaves_each_the_rest() {
    // The parking lot has datagrams over both links, and a flow on each link. A payload of 3 Mbit/s in
    // datagrams of 972 bytes is 3.086 Mbit/s of IP. The rest of the 8 Mbit/s carries 960 bytes of payload per
    // 1000. Receive windows keep the queues from overflowing. The queues hold 60 kB of 12 MB at the end.
    let r = simulate(&format!(
        "name = 't'\nduration = '20s'\n{CHAIN}
        [tcp]\ncc = 'reno'\nmss = 960\ntimestamps = false\nrwnd = '60kB'
        [[flow]]\nid = 'all'\nprotocol = 'udp'\nclient = 'a'\nserver = 'c'\nrate = '3Mbit'\ndatagram = 972
        [[flow]]\nid = 'first'\nclient = 'a'\nserver = 'b'
        [[flow]]\nid = 'second'\nclient = 'c'\nserver = 'b'\ndirection = 'in'"
    ));
    let rest = (8e6 - 3e6 * 1000.0 / 972.0) * 0.96;
    for id in ["first.0", "second.0"] {
        let share = goodput(&r, id) / rest;
        assert!((0.995..=1.005).contains(&share), "{id}: {share}");
    }
    assert_eq!(r.flows[0].loss, Some(0.0));
}

/// Returns the result with a gateway at r1 and one at r2, both with their WAN towards r3.
fn shaped(flows: &str) -> RunResult {
    let chain = CHAIN.replacen("name = 'r1'", "name = 'r1'\nwan = 'r2'", 1);
    let chain = chain.replacen("name = 'r2'", "name = 'r2'\nwan = 'r3'", 1);
    simulate(&format!(
        "name = 't'\nduration = '10s'\n{chain}
        [[host]]\nname = 'd'\nat = 'r1'\nrate = '100Mbit'\ndelay = '1ms'
        [tcp]\ncc = 'reno'
        [gateway]\nclass = [{{ name = 'up', ack = {{ preset = 'ack-shaper', flow_rate = '2Mbit' }} }}]\n{flows}"
    ))
}

#[test]
fn what_passes_a_gateway_is_shaped_and_what_stays_on_its_lan_side_is_not() {
    // From a to c the flow passes both gateways, and from a to b the first. From d to a at r1 it passes none,
    // though both hosts are at a gateway.
    let r = shaped(
        "[[flow]]\nid = 'far'\nclient = 'a'\nserver = 'c'
        [[flow]]\nid = 'near'\nclient = 'a'\nserver = 'b'
        [[flow]]\nid = 'local'\nclient = 'd'\nserver = 'a'\nduration = '1s'",
    );
    assert!((1.9e6..2.02e6).contains(&goodput(&r, "near.0")), "{}", goodput(&r, "near.0"));
    // Two shapers in a row hold the ACKs one after the other, so the slower of them determines the rate at
    // any time.
    assert!((1.4e6..2.02e6).contains(&goodput(&r, "far.0")), "{}", goodput(&r, "far.0"));
    assert!(goodput(&r, "local.0") > 50e6, "{}", goodput(&r, "local.0"));
    let class: Vec<&str> = r.flows.iter().map(|f| f.class.as_str()).collect();
    assert_eq!(class, ["up", "up", ""]);
    // The totals are sums over both gateways.
    let frames = &r.gateway.as_ref().unwrap().frames;
    let dropped: u64 = frames.dropped.values().sum();
    assert_eq!(frames.received + frames.made, frames.sent + frames.held + frames.absorbed + dropped);
    assert_eq!((r.classes.len(), r.classes[0].name.as_str()), (1, "up"));
    assert!(r.classes[0].acks_generated > 1000, "{:?}", r.classes[0]);
}
