//! Packets and bytes of interfaces, as the kernel counts them. The kernel counts a segment that an offload
//! keeps whole as one packet.

use super::namespace::Namespace;

/// Totals of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub rx_bytes: u64,
    pub rx_packets: u64,
    pub tx_bytes: u64,
    pub tx_packets: u64,
}

impl Counters {
    /// Reads the counters of `interface` in `namespace`.
    pub fn read(namespace: &Namespace, interface: &str) -> Result<Counters, String> {
        let path = "/proc/thread-self/net/dev";
        let text = namespace.inside(|| std::fs::read_to_string(path)).and_then(|read| read);
        let text = text.map_err(|e| format!("{}: {path}: {e}", namespace.name()))?;
        Counters::parse(&text, interface)
            .ok_or_else(|| format!("{}: {path}: no {interface}", namespace.name()))
    }

    fn parse(text: &str, interface: &str) -> Option<Counters> {
        let line = text.lines().find_map(|l| l.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
        let n: Vec<u64> = line.split_whitespace().map_while(|v| v.parse().ok()).collect();
        Some(Counters {
            rx_bytes: *n.first()?,
            rx_packets: *n.get(1)?,
            tx_bytes: *n.get(8)?,
            tx_packets: *n.get(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_line_and_columns() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  lan: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n";
        let c = Counters::parse(text, "lan").unwrap();
        assert_eq!((c.rx_bytes, c.rx_packets, c.tx_bytes, c.tx_packets), (10, 1, 20, 2));
        assert_eq!(Counters::parse(text, "wan"), None);
    }
}
