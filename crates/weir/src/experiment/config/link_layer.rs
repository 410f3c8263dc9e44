//! Key `link_layer` of `[gateway]`: the link whose bytes all rates count, by a name of tc-cake(8) or as a
//! table.

use super::diag::{listed, Fault};
use super::keys::{self, set, Key};
use super::learnt::{self, Kind};
use super::reader::{Section, Sink};
use super::value::{choice, found, int, one_of, signed};
use core::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};
use weir_core::packet::{Cells, LinkLayer};

/// Part of a link's description.
#[derive(Clone, Copy)]
enum Part {
    /// Bytes added to each packet, and the cells that carry them.
    Link(LinkLayer),
    /// Other cells.
    Cells(Cells),
    /// A VLAN tag.
    Tag,
    /// Nothing: as without the key.
    Raw,
}

/// Parts by the names of tc-cake(8). An AAL5 trailer has 8 bytes and LLC/SNAP 8 (RFC 2684), a bridged frame
/// 14 with 2 of padding and no FCS, PPPoE with PPP 8 (RFC 2516), PPP over AAL5 2 or 6 with LLC (RFC 2364).
const PARTS: [(&str, Part); 18] = [
    ("raw", Part::Raw),
    ("conservative", link(48, 0, Cells::Atm)),
    ("ethernet", link(38, 84, Cells::None)),
    ("docsis", link(18, 64, Cells::None)),
    ("pppoe-ptm", link(30, 0, Cells::Ptm)),
    ("bridged-ptm", link(22, 0, Cells::Ptm)),
    ("pppoe-vcmux", link(32, 0, Cells::Atm)),
    ("pppoe-llcsnap", link(40, 0, Cells::Atm)),
    ("pppoa-vcmux", link(10, 0, Cells::Atm)),
    ("pppoa-llc", link(14, 0, Cells::Atm)),
    ("ipoa-vcmux", link(8, 0, Cells::Atm)),
    ("ipoa-llcsnap", link(16, 0, Cells::Atm)),
    ("bridged-vcmux", link(24, 0, Cells::Atm)),
    ("bridged-llcsnap", link(32, 0, Cells::Atm)),
    ("ether-vlan", Part::Tag),
    ("noatm", Part::Cells(Cells::None)),
    ("atm", Part::Cells(Cells::Atm)),
    ("ptm", Part::Cells(Cells::Ptm)),
];

/// Kinds of cells, by name.
pub(super) const CELLS: [(&str, Cells); 3] =
    [("none", Cells::None), ("atm", Cells::Atm), ("ptm", Cells::Ptm)];

const TAG: i16 = 4;
/// Bytes that a link may add to a packet.
const OVERHEADS: RangeInclusive<i64> = -64..=256;
/// Least bytes that a link may have for a packet.
const MPUS: RangeInclusive<u64> = 0..=256;

const fn link(overhead: i16, mpu: u16, cells: Cells) -> Part {
    Part::Link(LinkLayer { overhead, mpu, cells })
}

type LayerKey = Key<LinkLayer>;

/// Keys of the table.
static KEYS: &[LayerKey] = &[
    LayerKey::new("overhead", |l, v| set(&mut l.overhead, signed(v, OVERHEADS).map(|n| n as i16)))
        .words(|l| Some(format!("{} bytes beside each IP packet", l.overhead))),
    LayerKey::new("mpu", |l, v| set(&mut l.mpu, int(v, MPUS).map(|n| n as u16)))
        .words(|l| (l.mpu > 0).then(|| format!("at least {} with them", l.mpu))),
    LayerKey::new("cells", |l, v| set(&mut l.cells, one_of(v, &CELLS, &[]))).words(|l| cells_words(l.cells)),
];

/// Reads a link; `None` is one without a layer.
pub(super) fn read(value: &DeValue) -> Result<Option<LinkLayer>, Fault> {
    learnt::kind(|| Kind::Text);
    match value {
        DeValue::String(names) => of_names(names),
        DeValue::Table(table) => read_table(table).map(Some),
        other => {
            let message = format!("expected a link or a table, found {}", found(other));
            Err(Fault::new(message, "write \"docsis\" or { overhead = 18, mpu = 64 }"))
        }
    }
}

/// Reads names separated by blanks, from left to right as tc does: a link, and what differs from it.
fn of_names(names: &str) -> Result<Option<LinkLayer>, Fault> {
    let parts: Vec<(&str, Part)> = names
        .split_whitespace()
        .map(|name| choice(name, "link layer", &PARTS, &[]).map(|part| (name, part)))
        .collect::<Result<_, _>>()?;
    if let [(_, Part::Raw)] = parts[..] {
        return Ok(None);
    }
    let mut layer = LinkLayer::default();
    let mut links = Vec::new();
    for (name, part) in parts {
        match part {
            Part::Link(link) => {
                layer = LinkLayer { overhead: layer.overhead.saturating_add(link.overhead), ..link };
                links.push(name);
            }
            Part::Cells(cells) => layer.cells = cells,
            Part::Tag => layer.overhead = layer.overhead.saturating_add(TAG),
            Part::Raw => return Err(Fault::new("`raw` stands alone", "it is as without `link_layer`")),
        }
    }
    let known = PARTS.iter().filter(|(_, part)| matches!(part, Part::Link(_)));
    match links[..] {
        [_] if OVERHEADS.contains(&i64::from(layer.overhead)) => Ok(Some(layer)),
        [_] => Err(Fault::bare(format!(
            "{} bytes beside each IP packet are not from -64 to 256",
            layer.overhead
        ))),
        [] => {
            let help = format!(
                "add its link, one of {}; or write a table with its `overhead`",
                listed(known.map(|(name, _)| *name))
            );
            Err(Fault::new(
                format!("\"{names}\" does not say the bytes that the link adds to a packet"),
                help,
            ))
        }
        [one, other, ..] => Err(Fault::new(
            format!("`{one}` and `{other}` are two links"),
            "rates count what one link adds to a packet: name the slowest",
        )),
    }
}

fn read_table(table: &DeTable) -> Result<LinkLayer, Fault> {
    let sink = Sink::default();
    let s = Section::inline(table, "link_layer", &sink);
    s.need("overhead", "18");
    let mut layer = LinkLayer::default();
    keys::read(KEYS, &[&s], &mut layer);
    s.finish();
    sink.into_faults().into_iter().next().map_or(Ok(layer), Err)
}

/// Describes a link in words, by its name if it has one.
pub(super) fn words(layer: &LinkLayer) -> String {
    let same = |part: &Part| matches!(part, Part::Link(known) if known == layer);
    let name = PARTS.iter().find(|(_, part)| same(part)).map(|(name, _)| format!(" {name}"));
    format!("link layer{} ({})", name.unwrap_or_default(), keys::words(KEYS, layer).join(", "))
}

/// Describes cells in words.
pub(super) fn cells_words(cells: Cells) -> Option<String> {
    match cells {
        Cells::None => None,
        Cells::Atm => Some("in ATM cells".to_string()),
        Cells::Ptm => Some("in PTM codewords".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &str) -> LinkLayer {
        of_names(names).expect("names of a link").expect("a layer")
    }

    /// Headers of RFC 2684, 2364 and 2516 and of IEEE 802.3: MAC 14, FCS 4, preamble 8, gap 12, tag 4.
    #[test]
    fn links_add_what_their_standards_say() {
        const AAL5: i16 = 8;
        const LLC_SNAP: i16 = 3 + 5;
        const BRIDGED: i16 = 2 + 14;
        const PPPOE: i16 = 6 + 2;
        const PTM: i16 = 1 + 1 + 2;
        for (name, overhead) in [
            ("ipoa-vcmux", AAL5),
            ("ipoa-llcsnap", AAL5 + LLC_SNAP),
            ("bridged-vcmux", AAL5 + BRIDGED),
            ("bridged-llcsnap", AAL5 + LLC_SNAP + BRIDGED),
            ("pppoe-vcmux", AAL5 + BRIDGED + PPPOE),
            ("pppoe-llcsnap", AAL5 + LLC_SNAP + BRIDGED + PPPOE),
            ("pppoa-vcmux", AAL5 + 2),
            ("pppoa-llc", AAL5 + 4 + 2),
        ] {
            assert_eq!(named(name), LinkLayer { overhead, mpu: 0, cells: Cells::Atm }, "{name}");
        }
        for (name, overhead) in [("bridged-ptm", 14 + 4 + PTM), ("pppoe-ptm", 14 + 4 + PTM + PPPOE)] {
            assert_eq!(named(name), LinkLayer { overhead, mpu: 0, cells: Cells::Ptm }, "{name}");
        }
        assert_eq!(
            named("ethernet"),
            LinkLayer { overhead: 14 + 4 + 8 + 12, mpu: 64 + 20, cells: Cells::None }
        );
        assert_eq!(named("docsis"), LinkLayer { overhead: 14 + 4, mpu: 64, cells: Cells::None });
    }

    #[test]
    fn names_change_the_link_from_left_to_right() {
        let ptm = LinkLayer { overhead: 42, mpu: 84, cells: Cells::Ptm };
        assert_eq!(named("ethernet ether-vlan ptm"), ptm);
        assert_eq!(named("ether-vlan ethernet ptm"), ptm);
        assert_eq!(named("atm docsis").cells, Cells::None);
        assert_eq!(of_names(" raw "), Ok(None));
    }

    #[test]
    fn words_have_the_name_of_a_known_link() {
        assert_eq!(
            words(&named("docsis")),
            "link layer docsis (18 bytes beside each IP packet, at least 64 with them)"
        );
        let other = named("pppoe-ptm ether-vlan");
        assert_eq!(words(&other), "link layer (34 bytes beside each IP packet, in PTM codewords)");
    }
}
