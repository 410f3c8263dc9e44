//! The law of lists: what is accepted means what it says. An independent reader, strict and slow, finds
//! rates, addresses and parents as they are written (RFC 4180, RFC 8259, decimal arithmetic), and the list
//! must have come to the same.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use weir::experiment::config::customers::Customer;
use weir::experiment::config::gateway::{self, GatewayFile};
use weir::experiment::config::{Settings, Source};

/// Returns whether a list is accepted, with the name and the text of a list of sites perhaps. Panics if it is
/// accepted and means something else.
pub fn holds(list: &str, sites: Option<(&str, &str)>) -> bool {
    let key = sites.map_or(String::new(), |(name, _)| format!("sites = \"{name}\"\n"));
    let toml = format!("[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"list.csv\"\n{key}");
    let read = |name: &str| {
        let text = sites.filter(|(sites, _)| *sites == name).map_or(list, |(_, text)| text);
        Ok(Source::of_list(name, text.as_bytes()))
    };
    match gateway::parse_with(&Source::new("gateway.toml", toml), &Settings::default(), &read) {
        Ok(file) => {
            let tree = sites.map(|(name, text)| Tree::read(name, text));
            compare(&file, &rows(list), tree.as_ref());
            true
        }
        Err(errors) => {
            let located = errors.located();
            assert!(!located.is_empty() && located.iter().all(|l| l.line > 0 && l.column > 0));
            false
        }
    }
}

/// A row: its line and its fields.
type Row = (usize, Vec<String>);

/// The rows of a file in which anything stands, without comments.
fn rows(text: &str) -> Vec<Row> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // A line ends in LF, CR LF or CR, wherever it is.
    let text = text.split("\r\n").map(|part| part.split('\r').collect::<Vec<_>>().join("\n"));
    let text = text.collect::<Vec<_>>().join("\n");
    let chars: Vec<char> = text.chars().collect();
    let (mut at, mut line, mut rows) = (0, 1, Vec::new());
    while at < chars.len() {
        match chars[at] {
            '\n' => (at, line) = (at + 1, line + 1),
            '#' => at += chars[at..].iter().position(|&c| c == '\n').unwrap_or(chars.len() - at),
            _ => {
                let (fields, end) = row(&chars, at);
                if fields.iter().any(|field| !field.is_empty()) {
                    rows.push((line, fields));
                }
                line += chars[at..end].iter().filter(|&&c| c == '\n').count();
                at = end;
            }
        }
    }
    rows
}

fn row(chars: &[char], mut at: usize) -> (Vec<String>, usize) {
    let mut fields = Vec::new();
    loop {
        let mut field = String::new();
        if chars.get(at) == Some(&'"') {
            at += 1;
            loop {
                let c = *chars.get(at).expect("accepted with a quote that is never closed");
                at += 1;
                if c != '"' {
                    field.push(c);
                } else if chars.get(at) == Some(&'"') {
                    field.push('"');
                    at += 1;
                } else {
                    break;
                }
            }
            while chars.get(at).is_some_and(|c| c.is_whitespace() && *c != '\n') {
                at += 1;
            }
        } else {
            while chars.get(at).is_some_and(|c| !",\n".contains(*c)) {
                field.push(chars[at]);
                at += 1;
            }
            assert!(!field.trim_start().starts_with('"'), "accepted with a quote behind a blank");
        }
        fields.push(field.trim().to_owned());
        match chars.get(at) {
            Some(',') => at += 1,
            None | Some('\n') => return (fields, at),
            Some(c) => panic!("accepted with {c:?} behind a closing quote"),
        }
    }
}

/// Sites by name and by identifier, each with the nearest that limits anything.
#[derive(Default)]
struct Tree {
    names: BTreeMap<String, Option<String>>,
    numbers: BTreeMap<String, Option<String>>,
    /// Rates of those that limit anything, in bits per second; none for that of the site above.
    rates: BTreeMap<String, [Option<u128>; 2]>,
    parents: BTreeMap<String, Option<String>>,
    /// True if rates are numbers of network.json, so that each is judged.
    has_numbers: bool,
}

impl Tree {
    fn read(name: &str, text: &str) -> Tree {
        let mut tree = Tree::default();
        if name.ends_with(".json") {
            tree.json(&serde_json::from_str(text).expect("accepted, and no JSON"), None);
            tree.has_numbers = true;
            return tree;
        }
        let rows = rows(text);
        let heading = |name: &str| rows[0].1.iter().position(|h| h.eq_ignore_ascii_case(name));
        // "none" is no parent, unless a site is called so.
        let has_none = rows[1..].iter().any(|(_, row)| heading("id").is_some_and(|i| row[i] == "none"));
        for (_, row) in &rows[1..] {
            let field = |name: &str| heading(name).map_or("", |i| &row[i]);
            let (id, parent) = (field("id").to_owned(), field("parent"));
            let is_given = !parent.is_empty() && (parent != "none" || has_none);
            let parent = is_given.then(|| parent.to_owned());
            tree.names.insert(id.clone(), Some(id.clone()));
            tree.rates.insert(id.clone(), [field("down"), field("up")].map(with_unit));
            tree.parents.insert(id, parent);
        }
        tree
    }

    fn json(&mut self, sites: &Value, above: Option<&String>) {
        for (id, site) in sites.as_object().into_iter().flatten() {
            let is_virtual = site["virtual"] == true
                || site["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("virtual"));
            let own = (!is_virtual).then(|| id.clone());
            let nearest = own.as_ref().or(above).cloned();
            self.names.insert(id.clone(), nearest.clone());
            let number = site["id"].as_str().map(str::to_owned).or_else(|| {
                let number = &site["id"];
                number.is_number().then(|| number.to_string())
            });
            number.map(|number| self.numbers.insert(number, nearest.clone()));
            if let Some(own) = own {
                let rate = |key: &str| {
                    let text = site[key].as_str().map_or_else(|| site[key].to_string(), str::to_owned);
                    megabits(text.trim()).filter(|&rate| rate > 0)
                };
                self.rates.insert(own.clone(), ["downloadBandwidthMbps", "uploadBandwidthMbps"].map(rate));
                self.parents.insert(own, above.cloned());
            }
            self.json(&site["children"], nearest.as_ref());
        }
    }

    /// The rate of a site: its own, or that of the nearest above it that has one.
    fn rate(&self, site: &str, k: usize) -> Option<u128> {
        self.rates[site][k].or_else(|| self.rate(self.parents[site].as_ref()?, k))
    }
}

/// Megabits a second in bits per second, to the nearest.
fn megabits(text: &str) -> Option<u128> {
    times(text, 1_000_000)
}

/// A rate with its unit.
fn with_unit(text: &str) -> Option<u128> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match &text[end..] {
        "bit" => 1,
        "kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        // A unit of another name is not judged.
        _ => return None,
    };
    times(text[..end].trim(), unit)
}

fn times(text: &str, unit: u128) -> Option<u128> {
    assert!(!text.contains('_'), "accepted with separated digits");
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    let places = fraction.len() as i32 - exponent.parse::<i32>().ok()?;
    let number = digits.parse::<u128>().ok()?.checked_mul(unit)?;
    match u32::try_from(places) {
        Ok(places) if places > 38 => Some(0),
        Ok(places) => Some((2 * number + 10u128.pow(places)) / (2 * 10u128.pow(places))),
        Err(_) => number.checked_mul(10u128.checked_pow(places.unsigned_abs())?),
    }
}

/// A list by its headings.
struct Reader<'a> {
    header: &'a [String],
    shaped_devices: bool,
}

impl Reader<'_> {
    /// The field of a row below a heading, empty without one.
    fn field<'r>(&self, row: &'r [String], name: &str) -> &'r str {
        let plain = |text: &str| {
            let text: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            text.to_ascii_lowercase()
        };
        let is = |heading: &String| match self.shaped_devices {
            true => {
                let heading = plain(heading);
                let heading = heading.strip_suffix("mbps").unwrap_or(&heading);
                heading == name || name == "circuitid" && heading == "circuitiddonotduplicate"
            }
            false => heading.eq_ignore_ascii_case(name),
        };
        self.header.iter().position(is).and_then(|i| row.get(i)).map_or("", String::as_str)
    }
}

/// A customer by its rows.
#[derive(Debug, Default)]
struct Said {
    prefixes: BTreeSet<(IpAddr, u8)>,
    rates: [Option<u128>; 2],
    least: [Option<u128>; 2],
    site: Option<String>,
}

fn addresses(text: &str) -> Vec<(IpAddr, u8)> {
    let parts = text.split(|c: char| c.is_whitespace() || ",;".contains(c)).filter(|part| !part.is_empty());
    let one = |part: &str| {
        let (address, bits) = part.split_once('/').map_or((part, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().expect("accepted, and no address");
        let whole = if address.is_ipv4() { 32 } else { 128 };
        (address, bits.map_or(whole, |bits| bits.parse().expect("accepted, and no length")))
    };
    parts.map(one).collect()
}

/// Returns whether a prefix has an address in it that no customer has (RFC 6890).
fn is_special(&(address, bits): &(IpAddr, u8)) -> bool {
    const V4: [(&str, &str); 5] = [
        ("0.0.0.0", "0.255.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("169.254.0.0", "169.254.255.255"),
        ("224.0.0.0", "239.255.255.255"),
        ("255.255.255.255", "255.255.255.255"),
    ];
    const V6: [(&str, &str); 3] = [
        ("::", "::1"),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ];
    let number = |address: IpAddr| match address {
        IpAddr::V4(a) => u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    };
    let (ranges, width) = if address.is_ipv4() { (&V4[..], 32) } else { (&V6[..], 128) };
    let first = number(address);
    let others = 1u128.checked_shl(width - u32::from(bits)).map_or(u128::MAX, |count| count - 1);
    ranges.iter().any(|(low, high)| {
        first <= number(high.parse().unwrap()) && first + others >= number(low.parse().unwrap())
    })
}

fn compare(file: &GatewayFile, rows: &[Row], tree: Option<&Tree>) {
    let header = &rows[0].1;
    let plain =
        |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let shaped_devices = header.iter().any(|h| plain(h).starts_with("circuitid"));
    let reader = Reader { header, shaped_devices };
    let mut said: BTreeMap<String, Said> = BTreeMap::new();
    for (line, row) in &rows[1..] {
        let noted = || file.notes.iter().any(|note| note.file == "list.csv" && note.line >= *line);
        let field = |own: &str, theirs: &str| reader.field(row, if shaped_devices { theirs } else { own });
        // A header once more has names in the place of values. They may differ in columns of no effect.
        if shaped_devices
            && plain(field("", "circuitid")) == "circuitid"
            && plain(field("", "ipv4")) == "ipv4"
        {
            assert!(noted(), "a second header without a note");
            continue;
        }
        let mut prefixes = addresses(field("prefixes", "ipv4"));
        if shaped_devices {
            assert!(prefixes.iter().all(|(a, _)| a.is_ipv4()), "accepted with another family below IPv4");
            let six = addresses(field("", "ipv6"));
            assert!(six.iter().all(|(a, _)| a.is_ipv6()), "accepted with another family below IPv6");
            prefixes.extend(six);
        }
        let id = match field("id", "circuitid") {
            "" => field("", "deviceid"),
            id => id,
        };
        prefixes.retain(|(a, bits)| !a.is_unspecified() || *bits < if a.is_ipv4() { 32 } else { 128 });
        if prefixes.iter().any(is_special) {
            assert!(noted(), "an address of \"{id}\" in line {line} is left out in silence");
            prefixes.retain(|prefix| !is_special(prefix));
        }
        if prefixes.is_empty() {
            assert!(noted(), "\"{id}\" in line {line} is left out in silence");
            continue;
        }
        let rate = |text: &str| if shaped_devices { megabits(text) } else { with_unit(text) };
        let entry = said.entry(id.to_owned()).or_default();
        entry.prefixes.extend(prefixes);
        entry.rates = [field("down", "downloadmax"), field("up", "uploadmax")].map(rate);
        entry.least = [field("down_min", "downloadmin"), field("up_min", "uploadmin")].map(rate);
        let (name, number) = (field("site", "parentnode"), field("", "parentnodeid"));
        entry.site = tree.and_then(|tree| {
            let site = tree.numbers.get(number).or_else(|| tree.names.get(name));
            let is_named = |said: &str| said != "none" || !shaped_devices && tree.names.contains_key("none");
            let is_given = [name, number].iter().any(|said| !said.is_empty() && is_named(said));
            assert!(site.is_some() || !is_given || tree.names.is_empty() || noted(), "no site \"{name}\"");
            site.filter(|_| is_given).cloned().flatten()
        });
    }
    let known: Vec<&str> = file.customers.iter().map(|c| c.id.as_str()).collect();
    let listed: BTreeSet<&str> = said.keys().map(String::as_str).collect();
    assert_eq!(known.iter().copied().collect::<BTreeSet<_>>(), listed);
    assert_eq!(known.len(), listed.len(), "a customer twice");
    file.customers.iter().for_each(|customer| one(file, customer, &said[&customer.id], shaped_devices));
    if let Some(tree) = tree {
        for site in &file.sites {
            let parent = site.parent.map(|at| file.sites[at].id.clone());
            assert_eq!(tree.parents.get(&site.id), Some(&parent), "the parent of site \"{}\"", site.id);
            for (k, rate) in [site.down, site.up].into_iter().enumerate() {
                let written = tree.rate(&site.id, k);
                let is_judged = written.is_some() || tree.has_numbers;
                assert!(!is_judged || written == Some(u128::from(rate.bps())), "{site:?}: {written:?}");
            }
        }
        assert_eq!(file.sites.len(), tree.rates.len());
    }
}

fn one(file: &GatewayFile, customer: &Customer, said: &Said, shaped_devices: bool) {
    let prefixes: BTreeSet<_> = customer.prefixes.iter().map(|p| (p.addr(), p.bits())).collect();
    assert_eq!(prefixes, said.prefixes, "{customer:?}");
    for (rate, written) in [customer.down, customer.up].into_iter().zip(said.rates) {
        assert!(written.is_none_or(|written| written == u128::from(rate.bps())), "{customer:?}: {said:?}");
    }
    assert_eq!(customer.site.map(|at| file.sites[at].id.clone()), said.site, "{customer:?}");
    for (least, written) in [customer.down_min, customer.up_min].into_iter().zip(said.least) {
        let Some(least) = least.map(|least| u128::from(least.bps())) else { continue };
        // Where a site promises more than it has, the least rates below it are less than is written.
        let reduced = shaped_devices && file.notes.iter().any(|note| note.message.contains("promises"));
        let right = written.is_none_or(|written| least == written || reduced && least < written);
        assert!(right, "{customer:?}: {said:?}");
    }
}
