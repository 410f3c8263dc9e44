use super::*;
use crate::experiment::config::gateway;
use sites::Site;

fn read_text(text: &str) -> Result<Vec<Customer>, Errors> {
    read(&Source::new("c.csv", text), None, [false; 2], &Settings::default()).map(|(list, _)| list)
}

fn faults(text: &str) -> Vec<String> {
    let errors = read_text(text).unwrap_err().located();
    errors.iter().map(|e| format!("{}:{}: {}", e.line, e.column, e.message)).collect()
}

fn prefixes(customer: &Customer) -> Vec<String> {
    customer.prefixes.iter().map(Prefix::to_string).collect()
}

#[test]
fn a_row_is_a_customer() {
    let list = read_text(
        "id,name,prefixes,down,up\n# a comment\n17,\"Ada, at home\",10.1.2.0/24 2001:db8:17::/48;10.2.0.1,50Mbit,2.5Mbit\n",
    )
    .unwrap();
    let [ada] = list.as_slice() else { panic!("{list:?}") };
    assert_eq!((ada.id.as_str(), ada.name.as_str()), ("17", "Ada, at home"));
    assert_eq!(prefixes(ada), ["10.1.2.0/24", "2001:db8:17::/48", "10.2.0.1/32"]);
    assert_eq!((ada.down, ada.up), (Rate::mbit(50), Rate::kbit(2_500)));
    // Columns may be in any order. Names are for people, and may be missing.
    let list = read_text("up,down,prefixes,id\n1Mbit,2Mbit,10.0.0.1,a\n").unwrap();
    assert_eq!((list[0].up, list[0].down, list[0].name.as_str()), (Rate::mbit(1), Rate::mbit(2), ""));
}

/// Rows like LibreQoS's example, with its last column and its unquoted commas.
const SHAPED_DEVICES: &str = "\
# made by an integration
Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm
1,\"968 Circle St., Gurnee\",1,Device 1,AP_A,,\"100.64.0.1, 100.64.0.14\",fdd7:b724:0:100::/56,1,1,155,20,,
2794,Home,5,Device 5,AP_11,,100.64.0.5,,1,0.5,2.5,0.5,Down=cake, Up=none,cake/none
2794,Home,6,Device 6,AP_11,,100.64.0.6,,1,0.5,2.5,0.5,,
,,7,Device 7,AP_11,,100.64.0.7,,1,1,10,10,
";

#[test]
fn shaped_devices_of_libreqos_are_understood() {
    let list = read_text(SHAPED_DEVICES).unwrap();
    let ids: Vec<&str> = list.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["1", "2794", "7"]);
    assert_eq!(prefixes(&list[0]), ["100.64.0.1/32", "100.64.0.14/32", "fdd7:b724:0:100::/56"]);
    assert_eq!(prefixes(&list[1]), ["100.64.0.5/32", "100.64.0.6/32"], "two devices of one circuit");
    assert_eq!((list[1].down, list[1].up), (Rate::kbit(2_500), Rate::kbit(500)));
}

#[test]
fn devices_of_a_circuit_have_one_rate() {
    let text = SHAPED_DEVICES.replace("100.64.0.6,,1,0.5,2.5,0.5", "100.64.0.6,,1,0.5,3,0.5");
    assert_eq!(faults(&text), ["5:47: circuit \"2794\" has other rates here"]);
}

/// A guarantee above the rate is wrong, below a site or not: LibreQoS refuses it, and columns that are
/// shifted by one look like it.
#[test]
fn guarantees_are_not_above_rates() {
    let text = SHAPED_DEVICES.replace("1,1,155,20", "160,1,155,20");
    assert_eq!(faults(&text), ["3:92: at least 160Mbit, which is more than its rate of 155Mbit"]);
}

#[test]
fn both_directions_come_from_one_row() {
    let list =
        read_text("id,prefixes,down,up\na,10.0.0.0/30 10.9.0.1,50Mbit,10Mbit\nb,10.1.0.0/30,5Mbit,1Mbit\n");
    let classes = classes(&list.unwrap(), &[], [None; 2]);
    let names: Vec<&str> = classes.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a-up", "a-down", "b-up", "b-down"]);
    let address = |p: &str| super::super::addresses::prefix(p).ok();
    assert_eq!(classes[0].matches[1].src, address("10.9.0.1"));
    assert_eq!((classes[1].matches[0].dst, classes[1].matches[0].src), (address("10.0.0.0/30"), None));
    assert_eq!(classes[0].ack.unwrap().release.rate(), Rate::mbit(10));
    assert_eq!(classes[1].ack.unwrap().release.rate(), Rate::mbit(50));
}

#[test]
fn what_is_wrong_is_named_with_row_and_column() {
    let good = "a,A,10.0.0.0/24,5Mbit,1Mbit\n";
    for (row, expected) in [
        (
            "b,B,10.0.0.0/33,5Mbit,1Mbit",
            "3:5: column \"prefixes\": \"10.0.0.0/33\" is longer than an address of 32 bits",
        ),
        (
            "b,B,10.1.0.0/24 10.2.0.1/24,5Mbit,1Mbit",
            "3:17: column \"prefixes\": \"10.2.0.1/24\" has bits set beyond its length of 24",
        ),
        ("b,B,10.1.0.0/24,5 MB,1Mbit", "3:17: column \"down\": "),
        ("b,B,10.1.0.0/24,1_000Mbit,1Mbit", "3:17: column \"down\": \"1_000Mbit\" is not a rate"),
        ("b,B,10.1.0.0/+24,5Mbit,1Mbit", "3:5: column \"prefixes\": \"10.1.0.0/+24\" is not an IP prefix"),
        (
            "b,B,::ffff:10.1.0.1,5Mbit,1Mbit",
            "3:5: column \"prefixes\": \"::ffff:10.1.0.1/128\" is mapped from IPv4",
        ),
        ("b,B,10.1.0.0/24,,1Mbit", "3:17: column \"down\": no rate"),
        ("b,B,10.1.0.0/24,5Mbit,0Mbit", "3:23: column \"up\": a rate of zero would never send anything"),
        ("b,B,10.1.0.0/24,5,1Mbit", "3:17: column \"down\": "),
        (",B,10.1.0.0/24,5Mbit,1Mbit", "3:1: column \"id\": empty"),
        ("a,B,10.1.0.0/24,5Mbit,1Mbit", "3:1: customer \"a\" is there twice"),
        ("b,B,10.0.0.0/24,5Mbit,1Mbit", "3:5: 10.0.0.0/24 is customer \"a\"'s too"),
        ("b,B,10.9.0.1 10.0.0.7,5Mbit,1Mbit", "3:14: 10.0.0.7/32 overlaps 10.0.0.0/24 of customer \"a\""),
        ("b,B,10.0.0.0/8,5Mbit,1Mbit", "3:5: 10.0.0.0/8 overlaps 10.0.0.0/24 of customer \"a\""),
        ("b,B,10.1.0.0/24,5Mbit", "3:1: a row with 4 fields under 5 columns"),
        ("b,B,10.1.0.0/24,5Mbit,1Mbit,,x", "3:1: a row with 7 fields under 5 columns"),
        (
            "b,B,10.1.0.0 255.255.255.0,5Mbit,1Mbit",
            "3:14: column \"prefixes\": \"255.255.255.0\" is a netmask",
        ),
    ] {
        let found = faults(&format!("id,name,prefixes,down,up\n{good}{row}\n"));
        assert_eq!(found.len(), 1, "{row}: {found:?}");
        assert!(found[0].starts_with(expected), "{row}: {found:?}");
    }
    assert_eq!(faults("id,prefixs,down,up\n"), ["1:4: unknown column \"prefixs\""]);
    assert_eq!(faults("id,prefixes,down\n"), ["1:1: the column \"up\" is missing"]);
    assert_eq!(faults("id,prefixes,down,up\n"), ["1:1: a list without customers"]);
    assert_eq!(faults("id,id,prefixes,down,up\n"), ["1:4: a second column \"id\""]);
}

/// Spreadsheets write commas for empty cells behind the last column that has something.
#[test]
fn empty_columns_behind_the_others_are_none() {
    for text in [
        "id,prefixes,down,up,,\na,10.0.0.1,5Mbit,1Mbit,,\nb,10.0.0.2,5Mbit,1Mbit,,\n",
        "id,prefixes,down,up\na,10.0.0.1,5Mbit,1Mbit\nb,10.0.0.2,5Mbit,1Mbit,,,\n",
    ] {
        assert_eq!(read_text(text).unwrap().len(), 2, "{text}");
    }
    assert_eq!(faults("id,,prefixes,down,up\n"), ["1:4: unknown column \"\""]);
    assert_eq!(
        faults("id,prefixes,down,up,\na,10.0.0.1,5Mbit,1Mbit,x\n"),
        ["2:1: a row with 5 fields under 4 columns"]
    );
}

#[test]
fn what_people_write_is_answered_with_the_right_word() {
    let helps = |text: &str| -> Vec<String> {
        let errors = read_text(text).unwrap_err().located();
        errors.into_iter().filter_map(|error| error.help).collect()
    };
    let heads = helps("Customer ID,Customer Name,IP,Download,Upload Rate\n");
    let meant = ["id", "name", "prefixes", "down", "up"];
    let is_meant = |(help, name): (&String, &str)| help.starts_with(&format!("did you mean `{name}`? "));
    assert!(heads.len() == 5 && heads.iter().zip(meant).all(is_meant), "{heads:?}");
    let row = |prefixes: &str| helps(&format!("id,prefixes,down,up\na,{prefixes},5Mbit,1Mbit\n")).remove(0);
    assert_eq!(row("10.1.0.0 255.255.255.0"), "did you mean \"10.1.0.0/24\"?");
    assert_eq!(row("10.1.0.7 255.255.255.0"), "write its length behind the address: 10.1.0.0/24");
    assert!(helps("id,prefixes,down,up\na,10.0.0.1,5Mbit\n")[0].contains("at the end of a row"));
}

#[test]
fn a_customer_s_own_prefixes_may_be_in_each_other() {
    let list =
        read_text("id,prefixes,down,up\na,10.0.0.0/24 10.0.0.7,5Mbit,1Mbit\nb,10.0.1.0/24,5Mbit,1Mbit\n");
    assert_eq!(list.unwrap().len(), 2);
}

#[test]
fn many_faults_are_counted() {
    let rows: String = (0..100).map(|n| format!("c{n},10.0.0.{n},0Mbit,1Mbit\n")).collect();
    let errors = read_text(&format!("id,prefixes,down,up\n{rows}")).unwrap_err();
    let located = errors.located();
    assert_eq!(located.len(), 20);
    assert_eq!(located[19].help.as_deref(), Some("80 further errors are not shown"));
}

#[test]
fn what_is_set_is_laid_over_the_list() {
    let source = Source::new("c.csv", "id,prefixes,down,up\na,10.0.0.1,5Mbit,1Mbit\n");
    let set = |texts: &[&str]| {
        let mut settings = Settings::default();
        settings.add_all(texts).unwrap();
        read(&source, None, [false; 2], &settings).map(|(list, _)| list)
    };
    let list = set(&["customer/a.down=7Mbit", "customer/a.off=true"]).unwrap();
    assert_eq!((list[0].down, list[0].up, list[0].off), (Rate::mbit(7), Rate::mbit(1), true));
    assert!(classes(&list, &[], [None; 2]).iter().all(|class| class.ack.is_none()));
    assert!(set(&["customer/b.off=true"]).unwrap_err().to_string().contains("there is no customer \"b\""));
    assert!(set(&["customer/a.down=fast"]).is_err());
}

fn sites_of(name: &str, text: &str) -> Result<Sites, Errors> {
    sites::read(&Source::new(name, text), &Settings::default())
}

fn site_faults(name: &str, text: &str) -> Vec<String> {
    let errors = sites_of(name, text).unwrap_err().located();
    errors.iter().map(|e| format!("{}:{}: {}", e.line, e.column, e.message)).collect()
}

/// Sites like LibreQoS's example.
const NETWORK: &str = r#"{
  "Site 1": {
    "downloadBandwidthMbps": 1000,
    "uploadBandwidthMbps": 500,
    "type": "Site",
    "children": {
      "AP_A": { "downloadBandwidthMbps": 150.5, "uploadBandwidthMbps": "50" }
    }
  }
}
"#;

#[test]
fn sites_come_from_rows_or_from_a_network_of_libreqos() {
    let rows = "id,down,up,parent\nAP_A,150.5Mbit,50Mbit,Site-1\nSite-1,1Gbit,500Mbit,\n";
    let of_rows = sites_of("s.csv", rows).unwrap().list;
    let of_network = sites_of("network.json", NETWORK).unwrap().list;
    let said = |sites: &[Site]| {
        let parent = |site: &Site| site.parent.map(|at| sites[at].name.clone());
        let mut all: Vec<_> = sites.iter().map(|s| (s.name.clone(), parent(s), s.down, s.up)).collect();
        all.sort();
        all
    };
    let ap = |parent: &str| ("AP_A".to_owned(), Some(parent.to_owned()), Rate::kbit(150_500), Rate::mbit(50));
    let top = |name: &str| (name.to_owned(), None, Rate::mbit(1000), Rate::mbit(500));
    assert_eq!(said(&of_rows), [ap("Site-1"), top("Site-1")]);
    assert_eq!(said(&of_network), [ap("Site_1"), top("Site_1")]);
    assert_eq!(of_network.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["Site 1", "AP_A"]);
}

#[test]
fn what_is_wrong_with_sites_is_named_with_its_place() {
    let rows = |rows: &str| site_faults("s.csv", &format!("id,parent,down,up\na,,10Mbit,5Mbit\n{rows}\n"));
    assert_eq!(rows("b,c,1Mbit,1Mbit"), ["3:3: no site is \"c\""]);
    assert_eq!(rows("a,,1Mbit,1Mbit"), ["3:1: site \"a\" is there twice"]);
    assert_eq!(rows("b,b,1Mbit,1Mbit"), ["3:1: site \"b\" is above itself, or has more than 6 above it"]);
    assert_eq!(rows("b,a,0Mbit,1Mbit"), ["3:5: column \"down\": a rate of zero would never send anything"]);
    // A customer is the eighth level, so seven sites may be in a line.
    let line = |n: u32| {
        (1..n)
            .map(|i| {
                format!("s{i},{},1Mbit,1Mbit\n", if i == 1 { "a".into() } else { format!("s{}", i - 1) })
            })
            .collect::<String>()
    };
    assert!(sites_of("s.csv", &format!("id,parent,down,up\na,,1Mbit,1Mbit\n{}", line(7))).is_ok());
    assert_eq!(rows(&line(8)), ["9:1: site \"s7\" is above itself, or has more than 6 above it"]);
    let network = |from: &str, to: &str| site_faults("n.json", &NETWORK.replacen(from, to, 1));
    assert_eq!(
        network("150.5", "\"fast\""),
        ["7:7: site \"AP_A\": `downloadBandwidthMbps`: \"fast\" is not a rate"]
    );
    assert_eq!(network("1000", "0"), ["2:3: site \"Site 1\" has no `downloadBandwidthMbps` above zero"]);
    assert_eq!(
        network("\"uploadBandwidthMbps\": 500,", ""),
        ["2:3: site \"Site 1\" has no `uploadBandwidthMbps`"]
    );
    assert!(network("\"type\": \"Site\",", "\"type\" \"Site\",")[0].starts_with("5:12: not JSON: "));
    assert_eq!(
        site_faults("n.json", &NETWORK.replace("AP_A", "Site_1"))[0],
        "7:7: the classes of site \"Site_1\" would be called as those of \"Site 1\""
    );
}

fn below_sites(rows: &str) -> Result<Vec<Customer>, Errors> {
    let sites = sites_of(
        "s.csv",
        "id,parent,down,up\ntower,,20Mbit,10Mbit\nroof,tower,15Mbit,10Mbit\nto_wer,,1Mbit,1Mbit\n",
    )
    .unwrap();
    let text = format!("id,prefixes,down,up,site,down_min,up_min\n{rows}");
    read(&Source::new("c.csv", text), Some(&sites), [false; 2], &Settings::default()).map(|(list, _)| list)
}

fn faults_below_sites(rows: &str) -> Vec<String> {
    let errors = below_sites(rows).unwrap_err().located();
    errors.iter().map(|e| format!("{}:{}: {}", e.line, e.column, e.message)).collect()
}

#[test]
fn customers_are_below_sites_that_exist_and_promise_what_they_have() {
    let good = "a,10.0.0.1,10Mbit,5Mbit,roof,8Mbit,\n";
    assert_eq!(below_sites(good).unwrap()[0].site, Some(1));
    for (row, expected) in [
        ("b,10.0.0.2,10Mbit,5Mbit,rof,,", "3:25: no site is \"rof\""),
        ("b,10.0.0.2,10Mbit,5Mbit,,1Mbit,", "3:26: a least rate without a site"),
        ("b,10.0.0.2,10Mbit,5Mbit,roof,,6Mbit", "3:31: at least 6Mbit, which is more than its rate of 5Mbit"),
        (
            "b,10.0.0.2,10Mbit,5Mbit,roof,8Mbit,",
            "3:30: site \"roof\" promises 16Mbit down up to here, and has 15Mbit",
        ),
        (
            "to.wer,10.0.0.2,10Mbit,5Mbit,,,",
            "3:1: the classes of customer \"to.wer\" would be called as those of site \"to_wer\"",
        ),
    ] {
        assert_eq!(faults_below_sites(&format!("{good}{row}\n")), [expected], "{row}");
    }
    // The tower's sum includes the guarantees at the roof.
    let tower = "b,10.0.0.2,10Mbit,5Mbit,tower,10Mbit,\nc,10.0.0.3,10Mbit,5Mbit,tower,3Mbit,\n";
    let found = faults_below_sites(&format!("{good}{tower}"));
    assert_eq!(found, ["4:31: site \"tower\" promises 21Mbit down up to here, and has 20Mbit"]);
    assert_eq!(
        faults("id,prefixes,down,up,site\na,10.0.0.1,5Mbit,1Mbit,x\n"),
        ["2:24: no site is \"x\": there is no list of sites"]
    );
}

#[test]
fn classes_of_customers_borrow_from_those_of_their_sites() {
    let sites = sites_of(
        "s.csv",
        "id,parent,down,up\nroof,tower,15Mbit,10Mbit\ntower,,20Mbit,10Mbit\nidle,tower,1Mbit,1Mbit\n",
    )
    .unwrap();
    let rows = "id,prefixes,down,up,site,down_min\na,10.0.0.1,50Mbit,5Mbit,roof,3Mbit\nb,10.0.0.2,5Mbit,5Mbit,,\nc,10.0.0.3,5Mbit,5Mbit,tower,1Mbit\n";
    let (mut list, _) =
        read(&Source::new("c.csv", rows), Some(&sites), [false; 2], &Settings::default()).unwrap();
    let all = classes(&list, &sites.list, [None; 2]);
    let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
    let expected = [
        "a-up",
        "a-down",
        "b-up",
        "b-down",
        "c-up",
        "c-down",
        "roof-up",
        "roof-down",
        "tower-up",
        "tower-down",
    ];
    assert_eq!(names, expected, "nobody is below the idle one");
    let nested = |i: usize| all[i].nested.map(|n| (n.parent, n.rate, n.ceil, n.lends));
    let mbit = |n| Some(Rate::mbit(n));
    assert_eq!(nested(1), Some((Some(7), mbit(3), mbit(15), false)), "no more than its site");
    assert_eq!(all[1].ack.unwrap().release.rate(), Rate::mbit(15));
    assert_eq!((nested(3), nested(5)), (None, Some((Some(9), mbit(1), mbit(5), false))));
    assert_eq!(nested(7), Some((Some(9), mbit(3), mbit(15), true)));
    assert_eq!(nested(9), Some((None, mbit(20), None, true)));
    let config = |classes| weir_core::gateway::Config { classes, ..Default::default() };
    assert_eq!(config(all).check_nested(), Ok(()));
    // A customer that is off has no parent, and a site without customers has no classes.
    list[0].off = true;
    let all = classes(&list, &sites.list, [None; 2]);
    assert!(all[1].nested.is_none() && all.iter().all(|c| !c.name.starts_with("roof")));
    assert_eq!(config(all).check_nested(), Ok(()));
}

#[test]
fn parents_of_shaped_devices_are_sites_if_these_are_listed() {
    assert!(read_text(SHAPED_DEVICES).unwrap().iter().all(|c| c.site.is_none() && c.down_min.is_none()));
    let sites = sites_of("s.csv", "id,down,up\nAP_A,1Gbit,1Gbit\nAP_11,1Gbit,1Gbit\n").unwrap();
    let source = |text: &str| Source::new("c.csv", text);
    let devices = SHAPED_DEVICES.replace("1,0.5,2.5,0.5", "0.5,0.5,2.5,0.5");
    let (list, notes) = read(&source(&devices), Some(&sites), [false; 2], &Settings::default()).unwrap();
    assert_eq!(notes.len(), 1, "the queue disciplines of a list without queues: {notes:?}");
    let said: Vec<_> = list.iter().map(|c| (c.site, c.down_min)).collect();
    assert_eq!(
        said,
        [(Some(0), Some(Rate::mbit(1))), (Some(1), Some(Rate::kbit(500))), (Some(1), Some(Rate::mbit(1)))]
    );
    let moved = devices.replacen("Device 6,AP_11", "Device 6,AP_A", 1);
    let errors = read(&source(&moved), Some(&sites), [false; 2], &Settings::default()).unwrap_err().located();
    assert_eq!((errors[0].line, errors[0].message.as_str()), (5, "circuit \"2794\" has another site here"));
}

#[test]
fn rates_of_sites_are_set_while_they_run() {
    let source = Source::new("s.csv", "id,down,up\na,5Mbit,1Mbit\n");
    let set = |text: &str| {
        let mut settings = Settings::default();
        settings.add(text).unwrap();
        sites::read(&source, &settings)
    };
    assert_eq!(set("site/a.down=7Mbit").unwrap().list[0].down, Rate::mbit(7));
    assert!(set("site/b.down=7Mbit").unwrap_err().to_string().contains("there is no site \"b\""));
}

/// Customers with queues for downloads; uploads are held by ACKs. A site is in the tree of either direction
/// that its customers are in.
#[test]
fn customers_may_have_queues() {
    let parse = |keys: &str| {
        let toml =
            format!("[ports]\ndev = 'eth1'\n[gateway.customers]\nfile = 'c.csv'\nsites = 's.csv'\n{keys}\n");
        let read = |name: &str| {
            let text = match name {
                "s.csv" => "id,parent,down,up\ntower,,20Mbit,10Mbit\n",
                _ => "id,site,prefixes,down,up,down_min\nada,tower,10.1.0.1,5Mbit,1Mbit,2Mbit\nben,,10.1.0.2,3Mbit,1Mbit,\n",
            };
            Ok(Source::new(name, text))
        };
        gateway::parse_with(&Source::new("g.toml", toml), &Settings::default(), &read)
    };
    let file = parse("queues = 'down'\ndiscipline = 'pfq'\naqm = 'codel'\nqueue = '50kB'").unwrap();
    let classes = &file.gateway.classes;
    let class = |name: &str| classes.iter().find(|class| class.name == name).unwrap();
    let tree = |name: &str| {
        let spec = class(name).share.unwrap();
        assert_eq!((class(name).ack, class(name).nested), (None, None), "{name}");
        (spec.parent.map(|at| classes[at].name.as_str()), spec.rate, spec.ceil, spec.queue.map(|q| q.kind))
    };
    let codel = weir_core::queue::codel::Params::default();
    let params = weir_core::queue::fq_codel::Params { flows: 64, quantum: 1514, codel };
    let queue = Some(weir_core::queue::Kind::FqCodel { params, seed: 1 });
    let mbit = |n| Some(Rate::mbit(n));
    assert_eq!(tree("ada-down"), (Some("tower-down"), mbit(2), mbit(5), queue));
    assert_eq!(tree("ben-down"), (None, mbit(3), None, queue));
    assert_eq!(tree("tower-down"), (None, mbit(20), None, None));
    for name in ["ada-up", "ben-up", "tower-up"] {
        assert!(class(name).share.is_none() && class(name).ack.is_some(), "{name}");
    }
    let both = parse("queues = 'both'\nack_filter = 'delayed-per-flow'\nhosts = true").unwrap().gateway;
    let hosts = |class: &weir_core::gateway::ClassConfig| match class.share?.queue?.kind {
        weir_core::queue::Kind::AckFilter(params) => params.hosts,
        _ => None,
    };
    use weir_core::queue::ack_filter::Host::{Destination, Source as Sender};
    assert_eq!(hosts(&both.classes[0]), Some(Sender));
    assert_eq!(hosts(&both.classes[1]), Some(Destination));

    let fault = |keys: &str| parse(keys).unwrap_err().located().remove(0).message;
    assert_eq!(fault("aqm = 'codel'"), "`aqm` is of customers with queues");
    assert_eq!(
        fault("queues = 'both'\nunresponsive = 'fair'"),
        "`unresponsive` cannot be combined with queues both ways"
    );
    assert_eq!(fault("queues = 'left'"), "`gateway.customers.queues`: unknown value `left`");
}

/// Queue disciplines by rows, each way, of a list whose customers have queues of one way or both: LibreQoS's
/// example, with its unquoted comma in a comment in front of the column.
#[test]
fn queue_disciplines_of_shaped_devices_hold_by_row() {
    let parse = |rows: &str, keys: &str| {
        let toml = format!("[ports]\ndev = 'eth1'\n[gateway.customers]\nfile = 'c.csv'\n{keys}\n");
        let rows = rows.to_owned();
        let read = move |name: &str| Ok(Source::new(name, rows.clone()));
        gateway::parse_with(&Source::new("g.toml", toml), &Settings::default(), &read)
    };
    let kinds = |file: &gateway::GatewayFile| {
        let queue = |class: &weir_core::gateway::ClassConfig| class.share.and_then(|spec| spec.queue);
        let name = |kind| match kind {
            weir_core::queue::Kind::Fifo => "fifo",
            weir_core::queue::Kind::Pfq(_) => "pfq",
            weir_core::queue::Kind::FqCodel { .. } => "fq_codel",
            weir_core::queue::Kind::AckFilter(_) => "turns",
            _ => "another",
        };
        let classes = &file.gateway.classes;
        classes.iter().map(|class| queue(class).map_or("acks", |q| name(q.kind))).collect::<Vec<_>>()
    };
    let notes = |file: &gateway::GatewayFile| {
        file.notes.iter().map(|n| format!("{}:{}: {}", n.line, n.column, n.message)).collect::<Vec<_>>()
    };
    let both = parse(SHAPED_DEVICES, "queues = 'both'\ndiscipline = 'pfq'").unwrap();
    // Uploads before downloads.
    assert_eq!(kinds(&both), ["pfq", "pfq", "fifo", "fq_codel", "pfq", "pfq"]);
    assert_eq!(notes(&both), [""; 0]);
    let filter =
        parse(SHAPED_DEVICES, "queues = 'both'\nack_filter = 'delayed-per-flow'\nhosts = true").unwrap();
    assert_eq!(kinds(&filter), ["turns", "turns", "fifo", "turns", "turns", "turns"]);
    let down = parse(SHAPED_DEVICES, "queues = 'down'\nqueue = '50kB'").unwrap();
    assert_eq!(kinds(&down), ["acks", "fifo", "acks", "fq_codel", "acks", "fifo"]);
    assert_eq!(notes(&down), [""; 0], "no uploads are asked to have queues");
    let up = parse(SHAPED_DEVICES, "queues = 'up'\nqueue = '50kB'").unwrap();
    assert_eq!(kinds(&up), ["fifo", "acks", "fifo", "acks", "fifo", "acks"]);
    let without = "column \"sqm\" has no effect";
    assert_eq!(notes(&up), [format!("4:74: {without} for downloads: customers have no queues there")]);
    let none = parse(SHAPED_DEVICES, "police = true").unwrap();
    assert_eq!(notes(&none), [format!("4:74: {without} for downloads: customers have no queues there")]);

    // Devices of one circuit: what comes first counts.
    let two = SHAPED_DEVICES.replace("100.64.0.6,,1,0.5,2.5,0.5,,", "100.64.0.6,,1,0.5,2.5,0.5,,CAKE");
    let file = parse(&two, "queues = 'both'\ndiscipline = 'pfq'").unwrap();
    assert_eq!(kinds(&file), kinds(&both));
    assert_eq!(notes(&file), ["5:56: circuit \"2794\" has other queue disciplines here"]);

    // A name that LibreQoS has not is refused where there are queues, and else has no effect.
    let pie = SHAPED_DEVICES.replace("cake/none", "cake/pie");
    let errors = parse(&pie, "queues = 'up'\nqueue = '50kB'").unwrap_err().located();
    assert_eq!((errors[0].line, errors[0].column), (4, 74));
    assert_eq!(errors[0].message, "column \"sqm\": \"pie\" is no queue discipline");
    assert_eq!(
        notes(&parse(&pie, "").unwrap()),
        [format!("4:74: {without}: customers have no queues there")]
    );
}
