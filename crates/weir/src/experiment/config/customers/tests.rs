use super::*;

fn read_text(text: &str) -> Result<Vec<Customer>, Errors> {
    read(&Source::new("c.csv", text), &Settings::default())
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
    // Columns may stand in any order; names are for people, and may be missing.
    let list = read_text("up,down,prefixes,id\n1Mbit,2Mbit,10.0.0.1,a\n").unwrap();
    assert_eq!((list[0].up, list[0].down, list[0].name.as_str()), (Rate::mbit(1), Rate::mbit(2), ""));
}

/// Rows in the manner of LibreQoS's example, with its last column and the commas that it does not quote.
const SHAPED_DEVICES: &str = "\
# made by an integration
Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm
1,\"968 Circle St., Gurnee\",1,Device 1,AP_A,,\"100.64.0.1, 100.64.0.14\",fdd7:b724:0:100::/56,1,1,155,20,,
2794,Home,5,Device 5,AP_11,,100.64.0.5,,1,1,2.5,0.5,Down=cake, Up=none,cake/none
2794,Home,6,Device 6,AP_11,,100.64.0.6,,1,1,2.5,0.5,,
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
    let text = SHAPED_DEVICES.replace("100.64.0.6,,1,1,2.5,0.5", "100.64.0.6,,1,1,3,0.5");
    assert_eq!(faults(&text), ["5:45: circuit \"2794\" has other rates here"]);
}

#[test]
fn both_directions_come_from_one_row() {
    let list =
        read_text("id,prefixes,down,up\na,10.0.0.0/30 10.9.0.1,50Mbit,10Mbit\nb,10.1.0.0/30,5Mbit,1Mbit\n");
    let classes = classes(&list.unwrap());
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
        ("b,B,,5Mbit,1Mbit", "3:5: column \"prefixes\": no prefix"),
        ("b,B,10.1.0.0/24,,1Mbit", "3:17: column \"down\": no rate"),
        ("b,B,10.1.0.0/24,5Mbit,0Mbit", "3:23: column \"up\": a rate of zero would never send anything"),
        ("b,B,10.1.0.0/24,5,1Mbit", "3:17: column \"down\": "),
        (",B,10.1.0.0/24,5Mbit,1Mbit", "3:1: column \"id\": empty"),
        ("b c,B,10.1.0.0/24,5Mbit,1Mbit", "3:1: column \"id\": \"b c\" is not an identifier"),
        ("a,B,10.1.0.0/24,5Mbit,1Mbit", "3:1: customer \"a\" is there twice"),
        ("b,B,10.0.0.0/24,5Mbit,1Mbit", "3:5: 10.0.0.0/24 is customer \"a\"'s too"),
        ("b,B,10.9.0.1 10.0.0.7,5Mbit,1Mbit", "3:14: 10.0.0.7/32 overlaps 10.0.0.0/24 of customer \"a\""),
        ("b,B,10.0.0.0/8,5Mbit,1Mbit", "3:5: 10.0.0.0/8 overlaps 10.0.0.0/24 of customer \"a\""),
        ("b,B,10.1.0.0/24,5Mbit", "3:1: a row with 4 fields under 5 columns"),
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
        texts.iter().for_each(|text| settings.add(text).unwrap());
        read(&source, &settings)
    };
    let list = set(&["customer/a.down=7Mbit", "customer/a.off=true"]).unwrap();
    assert_eq!((list[0].down, list[0].up, list[0].off), (Rate::mbit(7), Rate::mbit(1), true));
    assert!(classes(&list).iter().all(|class| class.ack.is_none()));
    assert!(set(&["customer/b.off=true"]).unwrap_err().to_string().contains("there is no customer \"b\""));
    assert!(set(&["customer/a.down=fast"]).is_err());
}
