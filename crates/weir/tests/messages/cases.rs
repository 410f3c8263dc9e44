//! Files that are right, and what makes each of them wrong.

use weir::result::Backend;

pub const GATEWAY: &str = r#"[ports]
dev = "eth1"

[[gateway.class]]
name = "up"
match = [{ src = "10.0.0.0/8", dst_port = 5001 }]
ack = { preset = "ack-shaper", flow_rate = "10Mbit" }
"#;

pub const WAN: &str = r#"[ports]
lan = "eth0"
wan = "eth1"

[path]
rtt = "40ms"
"#;

pub const EXPERIMENT: &str = r#"name = "x"
duration = "10s"
[path]
rtt = "40ms"
wan = { rate = "100Mbit", queue = "100p" }
[[flow]]
id = "bulk"
count = 2
[[expect]]
what = "flow.bulk.*.goodput_bps"
op = "within"
target = "95Mbit"
tolerance = "1%"
"#;

pub const NETWORK: &str = r#"name = "x"
duration = "10s"
[[node]]
name = "r1"
[[node]]
name = "r2"
[[link]]
ends = ["r1", "r2"]
rate = "10Mbit"
[[host]]
name = "a"
at = "r1"
[[host]]
name = "b"
at = "r2"
[[flow]]
id = "up"
client = "a"
server = "b"
"#;

/// Title, file, and the text in it that is replaced by another.
pub const CASES: &[(&str, &str, &str, &str)] = &[
    ("unknown key in an inline table", GATEWAY, "flow_rate", "flow_rte"),
    ("unknown key at the top", EXPERIMENT, "duration", "durtion"),
    ("unknown key that resembles none", EXPERIMENT, "count", "colour"),
    ("unknown table", GATEWAY, "[[gateway", "[metrics]\n[[gateway"),
    ("wrong unit: bytes per second", GATEWAY, "10Mbit", "10 MB"),
    ("wrong unit: only its case", GATEWAY, "10Mbit", "10mbit"),
    ("rate without a unit", GATEWAY, "\"10Mbit\"", "10"),
    ("zero rate", GATEWAY, "10Mbit", "0Mbit"),
    ("rate out of range", GATEWAY, "10Mbit", "1kbit"),
    ("rate that is no whole number of bits", GATEWAY, "10Mbit", "10.0000001Mbit"),
    ("wrong type", GATEWAY, "\"up\"", "[\"up\"]"),
    ("wrong type: table expected", EXPERIMENT, "[path]\nrtt = \"40ms\"\nwan", "path = \"fast\"\nwan"),
    ("wrong type: array of tables expected", EXPERIMENT, "[[flow]]", "[flow]"),
    ("missing key", GATEWAY, "dev = \"eth1\"", ""),
    ("customers without a file", GATEWAY, "[[gateway", "[gateway.customers]\n[[gateway"),
    ("a list that is not there", GATEWAY, "[[gateway", "[gateway.customers]\nfile = \"no.csv\"\n[[gateway"),
    ("the second interface of a gateway", GATEWAY, "dev = \"eth1\"", "lan = \"eth0\"\nwan = \"eth1\""),
    ("modes of XDP", GATEWAY, "\"eth1\"", "\"eth1\"\nmode = \"native\"\nzero_copy = true"),
    ("too long a batch", GATEWAY, "\"eth1\"", "\"eth1\"\nbatch_delay = \"20ms\""),
    ("too long a spin", GATEWAY, "\"eth1\"", "\"eth1\"\nspin = \"2ms\""),
    ("waiting for no time", GATEWAY, "\"eth1\"", "\"eth1\"\nwait = \"0s\""),
    ("a gateway that controls nothing", GATEWAY, "ack = { preset = \"ack-shaper\", flow_rate = \"10Mbit\" }", ""),
    ("an emulator without an interface", WAN, "lan = \"eth0\"\nwan = \"eth1\"", "wait = \"1s\""),
    ("an emulator with half a pair", WAN, "wan = \"eth1\"", ""),
    ("an emulator with one interface and two", WAN, "lan = \"eth0\"", "dev = \"eth2\"\nlan = \"eth0\""),
    ("an emulator of nothing", WAN, "lan = \"eth0\"\nwan = \"eth1\"\n\n[path]\nrtt = \"40ms\"", "dev = \"eth1\"\n[path]"),
    ("too many engines", GATEWAY, "\"eth1\"", "\"eth1\"\nengines = 9"),
    (
        "engines without classes of their own",
        GATEWAY,
        "\"eth1\"\n\n[[gateway.class]]\nname = \"up\"\nmatch = [{ src = \"10.0.0.0/8\", dst_port = 5001 }]",
        "\"eth1\"\nengines = 2\n[[gateway.class]]\nname = \"up\"",
    ),
    ("engines of an emulator", WAN, "\"eth1\"", "\"eth1\"\nengines = 2"),
    ("batches of an emulator", WAN, "\"eth1\"", "\"eth1\"\nbatch_delay = \"1ms\""),
    ("missing key of an inline table", GATEWAY, ", flow_rate = \"10Mbit\"", ""),
    ("missing table", GATEWAY, "[[gateway.class]]\nname", "[path]\nfoo"),
    ("empty file", EXPERIMENT, EXPERIMENT, ""),
    (
        "a second class of the same name",
        GATEWAY,
        "[[gateway",
        "[[gateway.class]]\nname = \"up\"\nmatch = [{ vlan = 7 }]\n[[gateway",
    ),
    (
        "a class that can never take a flow",
        GATEWAY,
        "[[gateway",
        "[[gateway.class]]\nname = \"all\"\n[[gateway",
    ),
    ("a rule that names nothing", GATEWAY, "{ src = \"10.0.0.0/8\", dst_port = 5001 }", "{}"),
    ("no rules at all", GATEWAY, "[{ src = \"10.0.0.0/8\", dst_port = 5001 }]", "[]"),
    ("bad prefix: bits beyond its length", GATEWAY, "10.0.0.0/8", "10.1.2.3/8"),
    ("bad prefix: too long", GATEWAY, "10.0.0.0/8", "10.0.0.0/33"),
    ("bad prefix: a name", GATEWAY, "10.0.0.0/8", "example.org"),
    ("bad port", GATEWAY, "5001", "\"5008-5001\""),
    ("both ports are one interface", WAN, "eth1", "eth0"),
    ("not an interface", GATEWAY, "eth1", "../etc/passwd"),
    ("a preset that does not exist yet", GATEWAY, "ack-shaper", "postack"),
    ("a preset that never existed", GATEWAY, "ack-shaper", "ack-shapper"),
    (
        "a hold that does not exist yet",
        GATEWAY,
        "preset = \"ack-shaper\"",
        "hold = \"queue\", release = \"rate\"",
    ),
    (
        "a release that does not exist yet",
        GATEWAY,
        "preset = \"ack-shaper\"",
        "hold = \"number\", release = \"round\"",
    ),
    ("bounds for a fixed period", GATEWAY, "10Mbit\"", "10Mbit\", period = \"10ms\", period_max = \"20ms\""),
    (
        "bounds for the fixed period of a preset",
        GATEWAY,
        "ack-shaper\", flow_rate = \"10Mbit\"",
        "ack-shaper-published\", flow_rate = \"10Mbit\", period_max = \"20ms\"",
    ),
    ("a period that is neither auto nor a duration", GATEWAY, "10Mbit\"", "10Mbit\", period = \"often\""),
    (
        "a window sized without a bound",
        GATEWAY,
        "10Mbit\"",
        "10Mbit\", window = \"size\", standing_delay = \"none\"",
    ),
    ("a bound that is neither none nor a duration", GATEWAY, "10Mbit\"", "10Mbit\", standing_delay = \"no\""),
    (
        "a standing delay in a kept window",
        GATEWAY,
        "10Mbit\"",
        "10Mbit\", window = \"keep\", standing_delay = \"20ms\"",
    ),
    ("thresholds the wrong way round", GATEWAY, "10Mbit\"", "10Mbit\", slow_start_exit = 1.5"),
    (
        "thresholds of nothing",
        GATEWAY,
        "10Mbit\"",
        "10Mbit\", slow_start = \"ignore\", slow_start_enter = 1.5",
    ),
    ("delay and rtt", EXPERIMENT, "100Mbit\"", "100Mbit\", delay = \"20ms\""),
    ("delay of one direction and rtt", EXPERIMENT, "100p\"", "100p\", out = { delay = \"20ms\" }"),
    (
        "the same key for both directions and for one",
        EXPERIMENT,
        "100p\"",
        "100p\", out = { queue = \"10p\" }",
    ),
    ("two kinds of loss", EXPERIMENT, "100p\"", "100p\", loss = 0.1, loss_every = 10"),
    ("loss above certainty", EXPERIMENT, "100p\"", "100p\", loss = \"101%\""),
    ("a queue without a unit", EXPERIMENT, "100p", "100"),
    ("a queue without a rate", EXPERIMENT, "rate = \"100Mbit\", ", ""),
    ("a queue that no frame fits in", EXPERIMENT, "100p", "0.001bdp"),
    ("a queue without room", EXPERIMENT, "100p", "0p"),
    ("a path beside nodes", NETWORK, "[[node]]\nname = \"r1\"", "[path]\nrtt = \"1ms\"\n[[node]]\nname = \"r1\""),
    ("two nodes of a name", NETWORK, "name = \"r2\"", "name = \"r1\""),
    ("a link to a node that there is not", NETWORK, "[\"r1\", \"r2\"]", "[\"r1\", \"r3\"]"),
    ("a link to its own end", NETWORK, "[\"r1\", \"r2\"]", "[\"r1\", \"r1\"]"),
    ("a link with one end", NETWORK, "[\"r1\", \"r2\"]", "[\"r1\"]"),
    ("two links between two nodes", NETWORK, "[[host]]\nname = \"a\"", "[[link]]\nends = [\"r2\", \"r1\"]\n[[host]]\nname = \"a\""),
    ("a node that no link leads to", NETWORK, "[[link]]", "[[node]]\nname = \"r3\"\n[[link]]"),
    ("nodes without links", NETWORK, "[[link]]\nends = [\"r1\", \"r2\"]\nrate = \"10Mbit\"\n", ""),
    ("a bandwidth-delay product of no path", NETWORK, "10Mbit\"", "10Mbit\"\nqueue = \"1bdp\""),
    ("a gateway that nothing is said of", NETWORK, "name = \"r1\"", "name = \"r1\"\nwan = \"r2\""),
    ("a WAN that no link leads to", NETWORK, "name = \"r1\"", "name = \"r1\"\nwan = \"r1\""),
    ("a gateway that is nowhere", NETWORK, "[[link]]", "[gateway]\nclass = [{ name = \"c\", ack = { flow_rate = \"1Mbit\", preset = \"ack-shaper\" } }]\n[[link]]"),
    ("a side where there is none", NETWORK, "at = \"r1\"", "side = \"lan\""),
    ("a node on the path", EXPERIMENT, "[[flow]]", "[[host]]\nname = \"h\"\nat = \"r1\"\n[[flow]]"),
    ("hosts at no node", NETWORK, "at = \"r1\"", ""),
    ("a flow without its ends", NETWORK, "client = \"a\"", ""),
    ("an AQM that does not exist yet", EXPERIMENT, "100p\"", "100p\", aqm = \"cake\""),
    ("an AQM without a queue", EXPERIMENT, "rate = \"100Mbit\", queue = \"100p\"", "aqm = \"codel\""),
    ("an AQM beside step marking", EXPERIMENT, "100p\"", "100p\", mark = \"10p\", aqm = \"codel\""),
    ("a parameter of another AQM", EXPERIMENT, "100p\"", "100p\", aqm = \"codel\", step = \"1ms\", flows = 10, red_p = 0.1"),
    ("a parameter of no AQM", EXPERIMENT, "100p\"", "100p\", target = \"5ms\""),
    ("DualPI2 without marks", EXPERIMENT, "100p\"", "100p\", aqm = \"dualpi2\", ecn = false, interval = \"1ms\""),
    ("thresholds of RED the wrong way round", EXPERIMENT, "100p\"", "100p\", aqm = \"red\", red_min = \"20p\", red_max = \"10p\""),
    ("an ACK filter of no policy", EXPERIMENT, "100p\"", "100p\", ack_filter = \"delay\""),
    ("an ACK filter beside an AQM", EXPERIMENT, "100p\"", "100p\", ack_filter = \"delayed\", aqm = \"codel\""),
    ("an ACK filter that is a number", EXPERIMENT, "100p\"", "100p\", ack_filter = 3"),
    ("a threshold of no ACK", EXPERIMENT, "100p\"", "100p\", ack_filter = { policy = \"static\", threshold = 0 }"),
    ("a threshold of half an ACK", EXPERIMENT, "100p\"", "100p\", ack_filter = { policy = \"static\", threshold = 0.5 }"),
    ("a threshold without static filtering", EXPERIMENT, "100p\"", "100p\", ack_filter = { threshold = 3 }"),
    ("turns where flows are not told apart", EXPERIMENT, "100p\"", "100p\", ack_filter = { policy = \"delayed\", service = \"rr\" }"),
    ("turns in the order of arrival", EXPERIMENT, "100p\"", "100p\", ack_filter = { service = \"fifo\", quantum = 1000 }"),
    ("an ACK filter that measures nothing and has a window", EXPERIMENT, "100p\"", "100p\", ack_filter = { policy = \"classical\", window = \"1s\" }"),
    ("a window shorter than an ACK", EXPERIMENT, "100p\"", "100p\", ack_filter = { window = \"2us\" }"),
    ("filtering that ends above where it begins", EXPERIMENT, "100p\"", "100p\", ack_filter = { on = 0.5, off = 0.6 }"),
    ("a use of nothing", EXPERIMENT, "100p\"", "100p\", ack_filter = { on = 0 }"),
    ("a key that an ACK filter has not", EXPERIMENT, "100p\"", "100p\", ack_filter = { polcy = \"delayed\" }"),
    ("an ACK filter without a queue", EXPERIMENT, "rate = \"100Mbit\", queue = \"100p\"", "ack_filter = true"),
    ("an ACK filter beside queues of flows", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"pfq\"\nack_filter = true\n[[flow]]"),
    ("a law without jitter", EXPERIMENT, "100p\"", "100p\", jitter_law = \"exponential\""),
    ("a law of jitter that does not exist", EXPERIMENT, "100p\"", "100p\", jitter = \"1ms\", jitter_law = \"gauss\""),
    ("half of Gilbert and Elliott", EXPERIMENT, "100p\"", "100p\", loss_r = \"20%\", loss_bad = \"50%\""),
    ("bursts beside other losses", EXPERIMENT, "100p\"", "100p\", loss_every = 10, loss_p = \"1%\", loss_r = \"20%\""),
    ("a rate and a trace of it", EXPERIMENT, "100p\"", "100p\", rate_trace = \"tests/traces/no-rate\""),
    ("a trace that is not there", EXPERIMENT, "rate = \"100Mbit\"", "delivery_trace = \"missing\""),
    ("a trace with an error", EXPERIMENT, "rate = \"100Mbit\"", "rate_trace = \"tests/traces/no-rate\""),
    ("frames that are late by nothing", EXPERIMENT, "100p\"", "100p\", reorder = \"1%\""),
    ("a LAN slower than the path", EXPERIMENT, "wan =", "lan = { delay = \"21ms\" }\nwan ="),
    ("both bytes and duration", EXPERIMENT, "count = 2", "bytes = \"1MB\"\nduration = \"5s\""),
    ("ports that are not one for each flow", EXPERIMENT, "count = 2", "count = 2\nport = \"5001-5003\""),
    (
        "a group on the port of another",
        EXPERIMENT,
        "[[expect]]",
        "[[flow]]\nid = \"b\"\nport = 5001\n[[expect]]",
    ),
    ("a second group of the same name", EXPERIMENT, "[[expect]]", "[[flow]]\nid = \"bulk\"\n[[expect]]"),
    ("a flow that would start after the end", EXPERIMENT, "count = 2", "count = 2\nstagger = \"10s\""),
    ("no flows", EXPERIMENT, "[[flow]]\nid = \"bulk\"\ncount = 2", ""),
    ("a sweep of nothing", EXPERIMENT, "[path]", "[sweep]\n[path]"),
    ("a sweep that is no table", EXPERIMENT, "[path]", "sweep = [1, 2]\n[path]"),
    ("a sweep over one value", EXPERIMENT, "[path]", "[sweep]\nseed = 1\n[path]"),
    ("a sweep over no values", EXPERIMENT, "[path]", "[sweep]\nseed = []\n[path]"),
    ("a sweep over the same values", EXPERIMENT, "[path]", "[sweep]\nseed = [1, 2, 1]\n[path]"),
    ("a value swept twice", EXPERIMENT, "[path]", "[sweep]\n\"tcp.mss\" = [500]\ntcp.mss = [600]\n[path]"),
    ("a swept key that does not exist", EXPERIMENT, "[path]", "[sweep]\n\"path.wan.los\" = [0.1]\n[path]"),
    ("a swept flow that does not exist", EXPERIMENT, "[path]", "[sweep]\n\"flow.bulky.count\" = [1]\n[path]"),
    ("a swept table", EXPERIMENT, "[path]", "[sweep]\n\"flow.bulk\" = [{}]\n[path]"),
    ("a swept key of a value", EXPERIMENT, "[path]", "[sweep]\n\"path.rtt.wan\" = [1]\n[path]"),
    ("a swept value that is wrong", EXPERIMENT, "[path]", "[sweep]\n\"path.wan.loss\" = [0.1, 1.1]\n[path]"),
    (
        "a sweep some of whose runs are wrong",
        EXPERIMENT,
        "count = 2",
        "start = \"2s\"\n[sweep]\nduration = [\"10s\", \"1s\"]\nseed = [1, 2]",
    ),
    (
        "too large a sweep",
        EXPERIMENT,
        "[path]",
        "[sweep]\nseed = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]\ntcp.initial_window = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]\ntcp.quick_acks = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]\n[path]",
    ),
    ("what the gateway holds without one", EXPERIMENT, "[path]", "series = [\"held\"]\n[path]"),
    ("a box that does not exist", EXPERIMENT, "[path]", "[lab]\nbox = \"ruoter\"\n[path]"),
    ("a version of IP that does not exist", EXPERIMENT, "[path]", "[lab]\nip = 5\n[path]"),
    ("a LAN of a host", EXPERIMENT, "[path]", "[lab]\nbox = \"host\"\n[path.lan]\ndelay = \"1ms\"\n[path]"),
    ("a rate of a class and of each flow", GATEWAY, "name = \"up\"", "name = \"up\"\nrate = \"8Mbit\""),
    ("an experiment's gateway that controls nothing", EXPERIMENT, "[path]", "[[gateway.class]]\nname = \"a\"\n[path]"),
    ("a bin that is too long", EXPERIMENT, "[path]", "bin = \"2s\"\n[path]"),
    ("a bin that is too fine", EXPERIMENT, "[path]", "bin = \"100us\"\n[path]"),
    ("hosts without a side", EXPERIMENT, "[[flow]]", "[[host]]\nname = \"a\"\n[[flow]]"),
    (
        "a second group of hosts of the same name",
        EXPERIMENT,
        "[[flow]]",
        "[[host]]\nname = \"a\"\nside = \"lan\"\n[[host]]\nname = \"a\"\nside = \"wan\"\n[[flow]]",
    ),
    (
        "a host's link said twice",
        EXPERIMENT,
        "[[flow]]",
        "[[host]]\nname = \"a\"\nside = \"lan\"\ndelay = \"1ms\"\nup = { delay = \"2ms\", queue = \"9p\" }\n[[flow]]",
    ),
    ("hosts that do not exist", EXPERIMENT, "count = 2", "client = \"clients\""),
    (
        "hosts on the wrong side",
        EXPERIMENT,
        "[[flow]]",
        "[[host]]\nname = \"a\"\nside = \"lan\"\n[[host]]\nname = \"b\"\nside = \"wan\"\n[[flow]]\nserver = \"a\"\nclient = \"aa\"",
    ),
    ("a link of a host that does not exist", EXPERIMENT, "flow.bulk.*.goodput_bps", "link.clients.0.up.packets"),
    ("UDP without a rate", EXPERIMENT, "count = 2", "protocol = \"udp\"\ndatagram = 1500\non = \"1s\""),
    ("UDP with keys of TCP", EXPERIMENT, "count = 2", "protocol = \"udp\"\nrate = \"1Mbit\"\ncc = \"reno\"\napp_rate = \"1Mbit\""),
    ("TCP with keys of UDP", EXPERIMENT, "count = 2", "rate = \"1Mbit\"\ndatagram = 500"),
    ("a protocol that does not exist", EXPERIMENT, "count = 2", "protocol = \"sctp\"\nrate = \"1Mbit\""),
    ("a distribution of nothing", EXPERIMENT, "count = 2", "bytes = {}"),
    ("two distributions", EXPERIMENT, "count = 2", "bytes = { uniform = [1, 2], exponential = \"1kB\" }"),
    ("a distribution that does not exist", EXPERIMENT, "count = 2", "bytes = { normal = \"1kB\" }"),
    ("a distribution the wrong way round", EXPERIMENT, "count = 2", "bytes = { uniform = [\"2kB\", \"1kB\"] }"),
    ("a distribution of one bound", EXPERIMENT, "count = 2", "bytes = { uniform = [\"2kB\"] }"),
    ("a distribution without its shape", EXPERIMENT, "count = 2", "bytes = { pareto = \"2kB\" }"),
    ("a shape out of range", EXPERIMENT, "count = 2", "bytes = { pareto = \"2kB\", shape = 0, max = \"1kB\" }"),
    ("a distribution of nothing but zero", EXPERIMENT, "count = 2", "bytes = { list = [0, 0] }"),
    ("a mean of zero", EXPERIMENT, "count = 2", "arrivals = { exponential = \"0s\" }"),
    ("a distribution in the wrong unit", EXPERIMENT, "count = 2", "arrivals = { list = [\"1ms\", \"1kB\"] }"),
    ("a rate of sizes", EXPERIMENT, "count = 2", "bytes = { poisson = \"10/s\" }"),
    ("arrivals at no rate", EXPERIMENT, "count = 2", "arrivals = { poisson = \"10 per second\" }"),
    ("arrivals that never come", EXPERIMENT, "count = 2", "arrivals = { poisson = \"0/s\" }"),
    ("two kinds of arrivals", EXPERIMENT, "count = 2", "stagger = \"1s\"\narrivals = \"1s\""),
    ("more arrivals than there can be", EXPERIMENT, "count = 2", "arrivals = { poisson = \"100/ms\" }"),
    ("drawn flows the first of which is late", EXPERIMENT, "count = 2", "start = \"10s\"\narrivals = \"1s\""),
    ("interfaces in an experiment", EXPERIMENT, "[path]", "[ports]\nlan = \"eth0\"\nwan = \"eth1\"\n[path]"),
    ("a key of parity that does not exist", EXPERIMENT, "[path]", "[parity]\ngoodputs = 0.05\n[path]"),
    ("parity beyond everything", EXPERIMENT, "[path]", "[parity]\ngoodput = 5\n[path]"),
    ("a time that no bin divides", EXPERIMENT, "tolerance", "from = \"1500ns\"\ntolerance"),
    ("times that make too many bins", EXPERIMENT, "10s\"", "100s\"\ninterval = \"333us\""),
    ("a burst without a rate", EXPERIMENT, "rate = \"100Mbit\", queue = \"100p\"", "burst = \"10kB\""),
    ("overhead of a frame", EXPERIMENT, "100p\"", "100p\", overhead = 300"),
    ("marks without a queue", EXPERIMENT, "rate = \"100Mbit\", queue = \"100p\"", "mark = \"20p\""),
    ("marks that the queue's limit hides", EXPERIMENT, "100p\"", "100p\", mark = \"100p\""),
    (
        "marks for both directions and for one",
        EXPERIMENT,
        "100p\"",
        "100p\", mark = \"20p\", out = { mark = \"10p\" }",
    ),
    ("a key of TCP that does not exist", EXPERIMENT, "[path]", "[tcp]\ninitial_cwnd = 10\n[path]"),
    ("a recovery that does not exist", EXPERIMENT, "[path]", "[tcp]\nrecovery = \"newrno\"\n[path]"),
    (
        "TCP out of range",
        EXPERIMENT,
        "[path]",
        "[tcp]\ntso_segments = 65\nmin_rto = \"0s\"\nmss = 40\n[path]",
    ),
    ("a shorthand with another recovery", EXPERIMENT, "count = 2", "cc = \"tahoe\"\nrecovery = \"sack\""),
    ("a boolean in quotes", EXPERIMENT, "count = 2", "ecn = \"true\""),
    ("a series that does not exist", EXPERIMENT, "[path]", "series = [\"cwnd\", \"queues\"]\n[path]"),
    ("series that are no array", EXPERIMENT, "[path]", "series = \"cwnd\"\n[path]"),
    ("no series at all", EXPERIMENT, "[path]", "series = []\n[path]"),
    ("samples of nothing", EXPERIMENT, "[path]", "sample = \"10ms\"\n[path]"),
    ("a column that is not recorded", EXPERIMENT, "goodput_bps\"", "acked_bytes\"\nat = \"2s\""),
    ("a column that links do not have", EXPERIMENT, "flow.bulk.*.goodput_bps", "link.wan.out.cwnd_packets"),
    ("a moment of a rate", EXPERIMENT, "tolerance", "at = \"2s\"\ntolerance"),
    ("a metric that does not exist", EXPERIMENT, "goodput_bps", "godput_bps"),
    ("something that cannot be measured", EXPERIMENT, "flow.bulk.*.goodput_bps", "disk.free"),
    ("a flow that does not exist", EXPERIMENT, "flow.bulk.*", "flow.bulky.*"),
    ("loss of TCP", EXPERIMENT, "goodput_bps", "loss"),
    ("the end of a flow without one", EXPERIMENT, "goodput_bps", "fct_s"),
    ("a queue of a link without a rate", EXPERIMENT, "flow.bulk.*.goodput_bps", "link.lan.out.queue_us.p99"),
    ("drops of a bare link", EXPERIMENT, "flow.bulk.*.goodput_bps", "link.lan.*.drops"),
    ("the other direction of a flow with one", EXPERIMENT, "goodput_bps", "back.goodput_bps"),
    (
        "what classes never have",
        EXPERIMENT,
        "[[expect]]\nwhat = \"flow.bulk.*.goodput_bps\"",
        "[[gateway.class]]\nname = \"a\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\" }\n[[expect]]\nwhat = \"class.a.queue_peak_bytes\"",
    ),
    ("guarantees above the link", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nmatch = [{ protocol = \"udp\" }]\nqueue = \"9p\"\nrate = \"6Mbit\"\n[[gateway.class]]\nname = \"b\"\nparent = \"link\"\nqueue = \"9p\"\nrate = \"5Mbit\"\n[[flow]]"),
    ("a parent that does not exist", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"lnk\"\nqueue = \"9p\"\n\n[[flow]]"),
    ("a parent of the other direction", EXPERIMENT, "[[flow]]", "[[gateway.class]]\ndirection = \"in\"\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\n\n[[flow]]"),
    ("a class at the top without a rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nqueue = \"9p\"\n[[flow]]"),
    ("a ceiling below the rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\nrate = \"6Mbit\"\nceil = \"5Mbit\"\n[[flow]]"),
    ("a ceiling above the link", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\nceil = \"11Mbit\"\n[[flow]]"),
    ("a queue of a parent", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\nqueue = \"9p\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\n\n[[flow]]"),
    ("more queues with CoDel than there can be", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"pfq\"\naqm = \"codel\"\nflows = 65_537\n[[flow]]"),
    ("flows of a fifo", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"fifo\"\nflows = 64\n[[flow]]"),
    ("a target without an AQM", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\ntarget = \"5ms\"\n[[flow]]"),
    ("a queue for no frame", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"1kB\"\n[[flow]]"),
    ("a queue in round trips", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"1bdp\"\n[[flow]]"),
    ("guarantees above the parent's rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\nmatch = [{ dst_port = 80 }]\nrate = \"6Mbit\"\n[[gateway.class]]\nname = \"b\"\nparent = \"site\"\nrate = \"5Mbit\"\n[[flow]]"),
    ("a parent of ACKs that does not exist", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nparent = \"sight\"\nrate = \"1Mbit\"\n[[gateway.class]]\ndirection = \"in\"\nname = \"site\"\nrate = \"10Mbit\"\n[[flow]]"),
    ("classes that are their own ancestors", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nparent = \"b\"\nrate = \"1Mbit\"\n[[gateway.class]]\nname = \"b\"\nparent = \"a\"\nrate = \"10Mbit\"\n[[flow]]"),
    ("a parent of ACKs of the other direction", EXPERIMENT, "[[flow]]", "[[gateway.class]]\ndirection = \"in\"\nname = \"site\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\n[[flow]]"),
    ("a parent without a rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\nrate = \"1Mbit\"\n[[flow]]"),
    ("a ceiling below the rate of ACKs", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\nrate = \"6Mbit\"\nceil = \"5Mbit\"\n[[flow]]"),
    ("a ceiling above the parent's", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"group\"\nparent = \"site\"\nceil = \"5Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"group\"\nceil = \"6Mbit\"\n[[flow]]"),
    ("flows of a parent", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\nrate = \"10Mbit\"\nflow_max = \"1Mbit\"\nmatch = [{ dst_port = 80 }]\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\n[[flow]]"),
    ("nine classes within each other", EXPERIMENT, "[[flow]]", concat!("[[gateway.class]]\nname = \"a\"\nrate = \"9Mbit\"\n", "[[gateway.class]]\nname = \"b\"\nparent = \"a\"\n[[gateway.class]]\nname = \"c\"\nparent = \"b\"\n[[gateway.class]]\nname = \"d\"\nparent = \"c\"\n[[gateway.class]]\nname = \"e\"\nparent = \"d\"\n[[gateway.class]]\nname = \"f\"\nparent = \"e\"\n[[gateway.class]]\nname = \"g\"\nparent = \"f\"\n[[gateway.class]]\nname = \"h\"\nparent = \"g\"\n[[gateway.class]]\nname = \"i\"\nparent = \"h\"\n[[flow]]")),
    ("classes of a tree that count other bytes", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\nmatch = [{ dst_port = 80 }]\nack = { counts = \"ip\" }\n[[gateway.class]]\nname = \"b\"\nparent = \"site\"\n[[flow]]"),
    ("a flow that may have more than its class", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nrate = \"1Mbit\"\nflow_max = \"2Mbit\"\n[[flow]]"),
    ("the most of a flow without a rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nflow_max = \"2Mbit\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\" }\n[[flow]]"),
    ("a least rate of flows above the class", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nrate = \"2Mbit\"\nflow_max = \"1Mbit\"\nflow_min = \"1500kbit\"\n[[flow]]"),
    ("a least rate of flows without a rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nflow_min = \"1Mbit\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\" }\n[[flow]]"),
    ("refusals where SYNs pass in the kernel", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nrate = \"2Mbit\"\nflow_min = \"1Mbit\"\nadmission = \"drop\"\n[[flow]]"),
    ("a least rate of flows in one queue", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\nflow_min = \"1Mbit\"\n[[flow]]"),
    ("a least rate of flows above the link", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"pfq\"\nflow_min = \"11Mbit\"\n[[flow]]"),
    ("refusals of flows without a least rate", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"pfq\"\nadmission = \"reset\"\n[[flow]]"),
    ("a refusal that does not exist", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"pfq\"\nflow_min = \"1Mbit\"\nadmission = \"later\"\n[[flow]]"),
    ("a priority among classes of ACKs", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"site\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"site\"\npriority = 1\n[[flow]]"),
    ("a priority without a queue", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\npriority = 1\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\" }\n[[flow]]"),
    ("congestion of a class without a queue", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", when = \"congested\" }\n[[flow]]"),
    ("a threshold that no queue reaches", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", when = \"congested\", threshold = \"9p\" }\n[[flow]]"),
    ("the default threshold in a short queue", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", when = \"congested\" }\n[[flow]]"),
    ("a threshold that is not asked", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", threshold = \"9p\" }\n[[flow]]"),
    ("a window beside congestion", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", when = \"congested\", threshold = \"5p\", standing_delay = \"20ms\" }\n[[flow]]"),
    ("a window beside bursts", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", action = \"police\", window = \"size\" }\n[[flow]]"),
    ("a burst of a shaper", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", burst = \"64KiB\" }\n[[flow]]"),
    ("a burst of nothing", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\", action = \"police\", burst = 0 }\n[[flow]]"),
    ("a policer of a rate that flows share", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nrate = \"1Mbit\"\nack = { action = \"police\" }\n[[flow]]"),
    ("RED in queues of flows", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\ndiscipline = \"pfq\"\naqm = \"red\"\n[[flow]]"),
    ("FQ-CoDel as an AQM", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\naqm = \"fq-codel\"\n[[flow]]"),
    ("a threshold of RED for CoDel", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\naqm = \"codel\"\nred_min = \"3p\"\n[[flow]]"),
    ("thresholds of RED in disorder", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nqueue = \"9p\"\naqm = \"red\"\nred_min = \"9p\"\nred_max = \"8p\"\n[[flow]]"),
    ("a class within another", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"link\"\nrate = \"10Mbit\"\n[[gateway.class]]\nname = \"a\"\nparent = \"link\"\nmatch = [{ src = \"10.0.0.0/8\" }]\nqueue = \"9p\"\n\n[[gateway.class]]\nname = \"b\"\nparent = \"link\"\nmatch = [{ src = \"10.1.0.0/16\", dst_port = 80 }]\nqueue = \"9p\"\n\n[[flow]]"),
    ("ACK control of UDP", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nmatch = [{ protocol = \"udp\" }]\nack = { preset = \"ack-shaper\", flow_rate = \"1Mbit\" }\n[[flow]]"),
    ("a protocol that does not exist", EXPERIMENT, "[[flow]]", "[[gateway.class]]\nname = \"a\"\nmatch = [{ protocol = \"quic\" }]\n[[flow]]"),
    ("requests of a bulk flow", EXPERIMENT, "count = 2", "request = \"1kB\""),
    ("requests without answers", EXPERIMENT, "count = 2", "kind = \"request\"\nrequest = \"1kB\"\nbytes = \"1MB\""),
    ("a kind that does not exist", EXPERIMENT, "count = 2", "kind = \"twoway\""),
    ("no gateway to measure", EXPERIMENT, "flow.bulk.*.goodput_bps", "gateway.cpu_s"),
    ("an interval of unknown length", EXPERIMENT, "goodput_bps", "interval_bps"),
    ("a window that means nothing", EXPERIMENT, "tolerance", "window = \"1s\"\ntolerance"),
    ("a time that means nothing", EXPERIMENT, "goodput_bps\"", "rtos\"\nfrom = \"1s\""),
    ("a measured time that is none", EXPERIMENT, "tolerance", "from = \"10s\"\ntolerance"),
    ("a bound in the wrong unit", EXPERIMENT, "95Mbit", "95ms"),
    ("no tolerance", EXPERIMENT, "tolerance = \"1%\"", ""),
    ("a tolerance for equality", EXPERIMENT, "within", "equals"),
    ("an operator that does not exist", EXPERIMENT, "within", "<="),
    ("not TOML", EXPERIMENT, "\"x\"", "x"),
    ("a key twice", EXPERIMENT, "name = \"x\"", "name = \"x\"\nname = \"y\""),
    (
        "tabs and other scripts in front",
        EXPERIMENT,
        "id = \"bulk\"\n",
        "\tid = \"bulk\" \n# ü\n\tcc = \"é\"\n",
    ),
    (
        "several errors at once",
        EXPERIMENT,
        "[path]\nrtt = \"40ms\"\n",
        "[path]\nrtt = 40\nfoo = 1\n[path.lan]\nrate = \"0bit\"\n[path.wan]\n",
    ),
];

/// Rows of a list of customers, below a good one, with what is wrong with them.
pub const CUSTOMERS: &[(&str, &str)] = &[
    ("a customer twice", "17,Ben,10.3.0.0/24,5Mbit,1Mbit"),
    ("a prefix that is none", "18,Ben,10.3.0.0/240,5Mbit,1Mbit"),
    ("a prefix of another customer", "18,Ben,10.1.2.0/24,5Mbit,1Mbit"),
    ("prefixes that overlap", "18,Ben,10.4.0.1 10.1.0.0/16,5Mbit,1Mbit"),
    ("a customer without a rate", "18,Ben,10.3.0.0/24,5Mbit,"),
    ("a customer without an address", "18,Ben,,5Mbit,1Mbit"),
    ("a customer with a rate of zero", "18,Ben,10.3.0.0/24,5Mbit,0bit"),
    ("an identifier that is none", "no 18,Ben,10.3.0.0/24,5Mbit,1Mbit"),
    ("a row with a comma too many", "18,Ben, upstairs,10.3.0.0/24,5Mbit,1Mbit"),
    ("a class with the name of a customer's", "up-to,Ben,10.3.0.0/24,5Mbit,1Mbit"),
];

/// What is set while a gateway runs.
pub const SETTINGS: &[(&str, &str)] = &[
    ("a key that a class has not", "class/up.ack.flow_rte=1Mbit"),
    ("a class that does not exist", "class/upp.ack.flow_rate=1Mbit"),
    ("a value that is none", "class/up.ack.flow_rate=fast"),
    ("a customer that does not exist", "customer/18.down=1Mbit"),
    ("a rate of a customer that is none", "customer/17.down=fast"),
    ("a rate of a site where there are none", "site/tower.down=1Mbit"),
];

/// What one world refuses: title, the world, and the text in the experiment that is replaced by another.
pub const REFUSED: &[(&str, Backend, &str, &str)] = &[
    ("keys that the lab does not have", Backend::Lab, "count = 2", "delayed_ack = 2\ninitial_window = 10"),
    ("defaults that the lab does not have", Backend::Lab, "[path]", "[tcp]\nmss = 1000\npacing = true\n[path]"),
    ("congestion controls that the lab does not have", Backend::Lab, "count = 2", "cc = \"tahoe\""),
    (
        "series that the lab does not have",
        Backend::Lab,
        "[path]",
        "series = [\"cwnd\"]\nsample = \"1ms\"\n[path]",
    ),
    (
        "access links of hosts, which the lab does not have",
        Backend::Lab,
        "[[flow]]",
        "[[host]]\nname = \"a\"\nside = \"lan\"\nrate = \"1Mbit\"\nup = { loss = \"1%\" }\n[[flow]]\nclient = \"a\"",
    ),
    (
        "hosts with IPv6 addresses, which the lab does not have",
        Backend::Lab,
        "[[flow]]",
        "[lab]\nip = 6\n[[host]]\nname = \"a\"\nside = \"lan\"\n[[flow]]\nclient = \"a\"",
    ),
    ("flows both ways, which the simulator does not have", Backend::Sim, "count = 2", "kind = \"two-way\""),
    (
        "UDP on and off, and datagrams without numbers, which the lab does not have",
        Backend::Lab,
        "count = 2",
        "protocol = \"udp\"\nrate = \"1Mbit\"\ndatagram = 7\non = \"1s\"\noff = \"1s\"",
    ),
    ("more flows than the lab can have", Backend::Lab, "count = 2", "count = 10_001"),
    ("more arrivals than the lab can have", Backend::Lab, "count = 2", "arrivals = \"900us\""),
    ("IPv6, which the simulator does not have", Backend::Sim, "[path]", "[lab]\nip = 6\n[path]"),
    ("times too fine for the lab", Backend::Lab, "tolerance", "from = \"1500us\"\ntolerance"),
];
