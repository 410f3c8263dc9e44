//! A host's protocol counters: `/proc/net/snmp` and `/proc/net/netstat`, named as in `nstat`.

use super::namespace::Namespace;
use std::collections::BTreeMap;

/// Counters by name, such as `TcpRetransSegs` and `TcpExtPAWSEstab`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nstat(BTreeMap<String, u64>);

impl Nstat {
    /// Reads a host's counters since it was made.
    pub fn read(namespace: &Namespace) -> Result<Nstat, String> {
        let read = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            let text = namespace.inside(|| std::fs::read_to_string(&path)).and_then(|read| read);
            text.map_err(|e| format!("{}: {path}: {e}", namespace.name()))
        };
        Ok(Nstat::parse(&(read("snmp")? + &read("netstat")?)))
    }

    /// Returns a counter, or 0 if this kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Parses pairs of lines, names and values: `Tcp: A B` and `Tcp: 1 2`.
    fn parse(text: &str) -> Nstat {
        let lines: Vec<&str> = text.lines().collect();
        let pairs = lines.chunks(2).filter_map(|pair| {
            let [names, values] = pair else { return None };
            let (prefix, names) = names.split_once(':')?;
            let (_, values) = values.split_once(':')?;
            Some((prefix, names, values))
        });
        let counters = pairs.flat_map(|(prefix, names, values)| {
            let values = values.split_whitespace().map(|v| v.parse().unwrap_or(0));
            names.split_whitespace().map(move |name| format!("{prefix}{name}")).zip(values)
        });
        Nstat(counters.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_paired() {
        let text = "Tcp: MaxConn RetransSegs\nTcp: -1 7\nTcpExt: PAWSEstab TCPTimeouts\nTcpExt: 3 4\n";
        let n = Nstat::parse(text);
        let of = |name| n.get(name);
        assert_eq!([of("TcpRetransSegs"), of("TcpExtPAWSEstab"), of("TcpExtTCPTimeouts")], [7, 3, 4]);
        assert_eq!([of("TcpMaxConn"), of("UdpInDatagrams")], [0, 0]);
    }
}
