//! Configurations of the attacked gateways. Each function returns the file for a gateway on the interface
//! `wan`.

/// Each flow to the LAN has a rate of its own.
pub fn flows_in(wan: &str) -> String {
    file(wan, "", &[flows()])
}

/// Each flow to the LAN has a rate of its own, and the flow table is small.
pub fn few_flows_in(wan: &str) -> String {
    file(wan, "max_flows = 1024", &[flows()])
}

/// Two customers, each with a rate for uploads.
pub fn classes_out(wan: &str) -> String {
    file(wan, "", &[attacker("out", ""), others("out", "")])
}

/// All in one class with a rate for uploads.
pub fn one_class_out(wan: &str) -> String {
    file(wan, "", &[class("all", "out", "rate = \"5Mbit\"")])
}

/// Two customers, each with a rate for downloads.
pub fn classes_in(wan: &str) -> String {
    file(wan, "", &[attacker("in", ""), others("in", "")])
}

/// Two customers, each with a rate for uploads. Unresponsive traffic beyond the rate is dropped.
pub fn policed(wan: &str) -> String {
    file(wan, "", &[attacker("out", POLICE), others("out", POLICE)])
}

/// Like [`policed`], with a rule that looks at ports, and with a prefix of IPv6.
pub fn policed_by_port(wan: &str) -> String {
    let dns = class("dns", "out", "match = [{ dst_port = 53 }]\nrate = \"2Mbit\"");
    let prefixes = r#"{ src = "10.71.0.0/24" }, { src = "fd71::/64" }"#;
    file(wan, "", &[dns, customer("attacker", "out", prefixes, POLICE), others("out", POLICE)])
}

/// Connections have a guaranteed rate, and five of them fit.
pub fn guaranteed_out(wan: &str) -> String {
    let keys = r#"rate = "5Mbit"
queue = "200p"
discipline = "pfq"
flow_min = "1Mbit"
admission = "drop""#;
    file(wan, "", &[class("all", "out", keys)])
}

/// Packets of all flows are paced at windows.
pub fn paced_out(wan: &str) -> String {
    let settings = "pace = \"clock\"\nline = \"1Gbit\"";
    file(wan, settings, &[class("all", "out", "rate = \"window\"\nqueue = \"200p\"")])
}

const POLICE: &str = "police = true";

fn file(wan: &str, settings: &str, classes: &[String]) -> String {
    format!("[ports]\ndev = \"{wan}\"\n[gateway]\n{settings}\n{}", classes.concat())
}

fn class(name: &str, direction: &str, keys: &str) -> String {
    format!("[[gateway.class]]\nname = \"{name}\"\ndirection = \"{direction}\"\n{keys}\n")
}

fn flows() -> String {
    let keys = r#"[gateway.class.ack]
preset = "ack-shaper"
flow_rate = "5Mbit""#;
    class("flows", "in", keys)
}

fn customer(name: &str, direction: &str, prefixes: &str, keys: &str) -> String {
    class(name, direction, &format!("match = [{prefixes}]\nrate = \"5Mbit\"\n{keys}"))
}

fn attacker(direction: &str, keys: &str) -> String {
    customer("attacker", direction, &prefix(direction, 0), keys)
}

fn others(direction: &str, keys: &str) -> String {
    let prefixes = format!("{}, {}", prefix(direction, 1), prefix(direction, 2));
    customer("others", direction, &prefixes, keys)
}

/// Returns the match for the prefix of a party at the LAN's end.
fn prefix(direction: &str, party: u8) -> String {
    let end = if direction == "out" { "src" } else { "dst" };
    format!("{{ {end} = \"10.71.{party}.0/24\" }}")
}
