//! Counters of sites in a running gateway: no change of its lists makes them go back or leap.

use super::nets::Nets;
use super::root;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use weir::result::running::GatewayReport;
use weir::result::traffic::Kind;

/// Datagrams sent at a time, and their bytes from IP headers on.
const DATAGRAMS: u64 = 200;
const BYTES: u64 = 1028;

/// A gateway on the router, with a list of one customer, which has the client's address.
struct Gateway {
    nets: Nets,
    process: Child,
}

impl Gateway {
    /// Starts it with more keys of its customers.
    fn new(prefix: &str, more: &str) -> Gateway {
        let nets = Nets::new(prefix);
        let file = |name: &str, text: &str| fs::write(nets.folder.path().join(name), text).unwrap();
        file("sites.csv", "id,parent,down,up\na,,90Mbit,90Mbit\nb,,90Mbit,90Mbit\n");
        file(
            "gateway.toml",
            &format!(
                "[ports]\ndev = \"wan\"\n[gateway.customers]\nfile = \"list.csv\"\nsites = \"sites.csv\"\n{more}"
            ),
        );
        list(&nets, "a");
        let mut weir = nets.inside("r", env!("CARGO_BIN_EXE_weir"));
        weir.arg("run").arg(nets.folder.path().join("gateway.toml")).stdout(Stdio::piped());
        let mut process = weir.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Gateway { nets, process }
    }

    fn ask(&self, words: &[&str]) -> String {
        let asked = self.nets.inside("r", env!("CARGO_BIN_EXE_weir")).args(words).output().unwrap();
        assert!(asked.status.success(), "{words:?}: {}", String::from_utf8_lossy(&asked.stderr));
        String::from_utf8(asked.stdout).unwrap()
    }

    /// Sends datagrams to the customer.
    fn send(&self) {
        let text = format!(
            "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             for i in range({DATAGRAMS}): s.sendto(bytes({}), ('10.33.1.2', 9)); time.sleep(0.001)",
            BYTES - 28
        );
        assert!(self.nets.inside("s", "python3").args(["-c", &text]).status().unwrap().success());
    }

    /// Returns the bytes to the customers of a site so far, in units of what is sent at a time; `None` if
    /// there is no such site.
    fn sent_to(&self, site: &str) -> Option<u64> {
        let answer: serde_json::Value = serde_json::from_str(&self.ask(&["ctl", "--json", "show"])).unwrap();
        let report: GatewayReport = serde_json::from_value(answer["report"].clone()).unwrap();
        let mut rows = report.traffic.iter();
        let row = rows.find(|row| row.kind == Kind::Site && row.name == site && row.direction == "in")?;
        // Neighbour discovery and the like are less than half of a unit.
        Some((row.load.bytes + DATAGRAMS * BYTES / 2) / (DATAGRAMS * BYTES))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.nets.inside("r", "kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// Writes the list, with the customer below a site.
fn list(nets: &Nets, site: &str) {
    let text = format!(
        "id,site,prefixes,down,up\n1,{site},10.33.1.2,80Mbit,80Mbit\n2,a,10.33.1.9,1Mbit,1Mbit\n\
                        3,b,10.33.1.8,1Mbit,1Mbit\n"
    );
    fs::write(nets.folder.path().join("list.csv"), text).unwrap();
}

fn counters_of_sites_go_on(prefix: &str, more: &str) {
    let gateway = Gateway::new(prefix, more);
    let sites = || ["a", "b"].map(|site| gateway.sent_to(site));
    gateway.send();
    assert_eq!(sites(), [Some(1), Some(0)]);
    // While the customer is off, it counts for no site.
    gateway.ask(&["ctl", "off", "1"]);
    gateway.send();
    assert_eq!(sites(), [Some(1), Some(0)]);
    gateway.ask(&["ctl", "on", "1"]);
    assert_eq!(sites(), [Some(1), Some(0)]);
    gateway.send();
    assert_eq!(sites(), [Some(2), Some(0)]);
    list(&gateway.nets, "b");
    gateway.ask(&["reload"]);
    gateway.send();
    assert_eq!(sites(), [Some(2), Some(1)]);
    list(&gateway.nets, "a");
    gateway.ask(&["reload"]);
    assert_eq!(sites(), [Some(2), Some(1)]);
}

/// The alternate screen is left when a signal ends it.
#[test]
fn top_gives_the_terminal_back() {
    if !root() {
        return;
    }
    let gateway = Gateway::new("weir-top", "");
    let screen = gateway.nets.folder.path().join("screen");
    let top =
        format!("stty rows 24 cols 80; timeout --foreground -s TERM 3 {} top", env!("CARGO_BIN_EXE_weir"));
    let mut script = gateway.nets.inside("r", "script");
    script.args(["-q", "-e", "-c", &top]).arg(&screen).env("TERM", "xterm");
    script.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    let screen = String::from_utf8_lossy(&fs::read(screen).unwrap()).into_owned();
    let place = |text: &str| screen.rfind(text);
    assert!(screen.contains("customers") && place("\x1b[?1049l") > place("\x1b[?1049h"), "{screen:?}");
}

#[test]
fn counters_of_sites_whose_customers_are_held_by_acks_go_on() {
    if root() {
        counters_of_sites_go_on("weir-sum", "");
    }
}

#[test]
fn counters_of_sites_whose_customers_have_queues_go_on() {
    if root() {
        let queues = "queues = \"both\"\ndiscipline = \"pfq\"\nqueue = \"200kB\"\n";
        counters_of_sites_go_on("weir-sumq", queues);
    }
}
