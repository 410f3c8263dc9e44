//! Lists of customers and sites as other programs write them and as people edit them: what each file in
//! `lists/` comes to.
//!
//! The expected values are those that a reader finds in the files by RFC 4180, RFC 8259 and the headings.

#[path = "lists/law.rs"]
mod law;
#[path = "lists/slips.rs"]
mod slips;

use std::path::Path;
use weir::experiment::config::experiment::runs;
use weir::experiment::config::gateway::{self, GatewayFile};
use weir::experiment::config::{Errors, Source};

fn read(list: &str, sites: Option<&str>) -> Result<GatewayFile, Errors> {
    let sites = sites.map_or(String::new(), |sites| format!("sites = \"{sites}\"\n"));
    let text = format!("[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"{list}\"\n{sites}");
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lists/gateway.toml");
    gateway::parse(&Source::new(beside, text))
}

/// Customers as `ID [PREFIXES] DOWN/UP SITE`, with rates in bits per second.
fn customers(file: &GatewayFile) -> Vec<String> {
    let one = |c: &weir::experiment::config::customers::Customer| {
        let prefixes: Vec<String> = c.prefixes.iter().map(ToString::to_string).collect();
        let site = c.site.map_or("", |site| &file.sites[site].id);
        format!("{} [{}] {}/{} {site}", c.id, prefixes.join(" "), c.down.bps(), c.up.bps())
    };
    file.customers.iter().map(one).collect()
}

/// Sites as `ID DOWN/UP PARENT`.
fn sites(file: &GatewayFile) -> Vec<String> {
    let parent = |site: Option<usize>| site.map_or("", |site| &file.sites[site].id);
    file.sites
        .iter()
        .map(|s| format!("{} {}/{} {}", s.id, s.down.bps(), s.up.bps(), parent(s.parent)))
        .collect()
}

/// Notes and errors as `FILE:LINE:COLUMN: MESSAGE`.
fn places(located: &[weir::experiment::config::diag::Located]) -> Vec<String> {
    let name = |file: &str| Path::new(file).file_name().unwrap().to_string_lossy().into_owned();
    located.iter().map(|l| format!("{}:{}:{}: {}", name(&l.file), l.line, l.column, l.message)).collect()
}

#[test]
fn lists_of_other_programs_mean_what_they_say() {
    let file = read("older.csv", None).unwrap();
    let expected = [
        "101 [100.70.0.1/32 100.70.0.2/32 2001:db8:70:100::/56] 60000000/12000000 ",
        "102 [100.70.0.3/32 100.70.0.4/31] 25500000/5250000 ",
        "103 [100.70.0.8/32] 100000000/10000000 ",
    ];
    assert_eq!(customers(&file), expected);
    let note = "older.csv:4:84: column \"sqm\" has no effect for downloads: customers have no queues there";
    assert_eq!(places(&file.notes), [note]);
    assert_eq!(file.customers[0].name, "4 Mill Lane, Upper Floor");

    // Least rates are 98 % of each plan, so both sites promise more than they have: 147 of 120 down, 29.4 of
    // 20 up.
    let file = read("quoted.csv", Some("quoted.json")).unwrap();
    let expected = [
        "crm:7/a [100.71.0.1/32 100.71.0.9/32] 50000000/10000000 Quay",
        "crm:8/a [2001:db8:71::/64] 100000000/20000000 Quay",
        "crm:9/a [100.71.0.77/32] 2000000/1000000 ",
    ];
    assert_eq!(customers(&file), expected);
    assert_eq!(sites(&file), ["Core 120000000/25000000 ", "Quay 120000000/20000000 Core"]);
    assert_eq!(file.customers[1].name, "6 Quay\nback door");
    let least =
        |i: usize| [file.customers[i].down_min, file.customers[i].up_min].map(|rate| rate.unwrap().bps());
    assert_eq!(least(0), [49_000_000 * 120 / 147, 9_800_000 * 200 / 294]);
    assert_eq!(least(1), [98_000_000 * 120 / 147, 19_600_000 * 200 / 294]);
    assert_eq!(
        places(&file.notes),
        [
            "quoted.json:4:45: unknown key `rack`, as in 1 more site",
            "quoted.csv:2:100: site \"Quay\" promises 147Mbit down, and has 120Mbit",
            "quoted.csv:2:100: site \"Core\" promises 147Mbit down, and has 120Mbit",
            "quoted.csv:2:107: site \"Quay\" promises 29.4Mbit up, and has 20Mbit",
            "quoted.csv:2:107: site \"Core\" promises 29.4Mbit up, and has 25Mbit",
            "quoted.csv:5:1: the header once more",
            "quoted.csv:6:31: no site is \"Nowhere\": the customer's rates hold, below no site",
        ]
    );

    // 115 % of 100 in single precision, and children of a site that limits nothing.
    let file = read("serialized.csv", Some("serialized.json")).unwrap();
    let expected = [
        "site-5-inf [100.72.0.1/32] 114999990/114999990 ",
        "c5 [100.72.0.5/32] 123457/100000 Region",
        "c6 [100.72.0.6/32] 20000000/5000000 Region",
        "c7 [100.72.0.7/32] 20000000/5000000 Roof",
    ];
    assert_eq!(customers(&file), expected);
    assert_eq!(sites(&file), ["Region 1000000000/500000000 ", "Roof 1000000000/40500000 Region"]);
    assert_eq!(
        places(&file.notes),
        [
            "serialized.json:8:11: site \"Roof\" has no rate of its own",
            "serialized.csv:2:50: no site is \"Core_Infrastructure\": the customer's rates hold, below no site",
        ]
    );
    // Without sites, parents are not looked for.
    assert_eq!(read("serialized.csv", Some("flat.json")).unwrap().notes, []);
    assert_eq!(
        places(&read("more-columns.csv", None).unwrap().notes),
        ["more-columns.csv:1:149: unknown column \"Billing Group\""]
    );
}

/// Old spreadsheets end lines in CR, and a file that several programs wrote ends them in any way.
#[test]
fn a_comment_ends_with_its_line_whatever_ends_it() {
    let file = read("old-mac.csv", Some("old-mac-sites.csv")).unwrap();
    let expected = ["1 [100.81.0.1/32] 20000000/5000000 Roof", "2 [100.81.0.2/32] 20000000/5000000 Roof"];
    assert_eq!(customers(&file), expected);
    assert_eq!(sites(&file), ["Roof 100000000/50000000 "]);
    let ids = |list: &str| -> Vec<String> {
        read(list, None).unwrap().customers.into_iter().map(|customer| customer.id).collect()
    };
    assert_eq!(ids("mixed-ends.csv"), ["1", "2", "3", "4"]);
    let errors = read("old-mac-wrong.csv", None).unwrap_err();
    assert!(places(&errors.located())[0].starts_with("old-mac-wrong.csv:3:21: "), "{errors}");
    assert!(errors.to_string().contains(" 3 | 1,100.81.1.1,20Mbit,5MB\n"), "{errors}");
}

/// `none` is LibreQoS's word. In a list of Weir's own it may be a site, and else no site.
#[test]
fn a_site_may_be_called_none() {
    let file = read("none.csv", Some("none-sites.csv")).unwrap();
    assert_eq!(customers(&file), ["1 [100.82.0.1/32] 20000000/10000000 none"]);
    assert_eq!(sites(&file), ["none 5000000/5000000 ", "roof 5000000/5000000 none"]);
    let file = read("none.csv", Some("old-mac-sites.csv")).unwrap();
    assert_eq!(customers(&file), ["1 [100.82.0.1/32] 20000000/10000000 "]);
}

#[test]
fn a_list_of_sites_is_json_by_its_name_in_any_case() {
    let file = read("quoted.csv", Some("upper.JSON")).unwrap();
    assert_eq!(sites(&file), ["Quay 120000000/20000000 "]);
}

/// 20,000 rows name sites that are gone, each another one, and there are 1,000 others; and all sites are one
/// line. Comparing each name with each takes minutes, and so does counting columns from the line's beginning.
#[test]
fn many_faults_take_no_longer_than_many_rows() {
    let begin = std::time::Instant::now();
    let list: String = (0..20_000)
        .map(|n| format!("{n},100.{}.{}.{},1Mbit,1Mbit,gone {n}\n", 96 + n / 65_536, n / 256 % 256, n % 256))
        .collect();
    let sites: String = (0..1_000).map(|n| format!("Tower {n},,100Mbit,50Mbit\n")).collect();
    let toml = |sites: &str| {
        format!("[ports]\ndev = \"e\"\n[gateway.customers]\nfile = \"c.csv\"\nsites = \"{sites}\"\n")
    };
    let parse = |list: &str, (name, sites): (&str, &str)| {
        let texts = |file: &str| Ok(Source::new(file, if file == name { sites } else { list }));
        gateway::parse_with(&Source::new("g.toml", toml(name)), &Default::default(), &texts)
    };
    let list = format!("id,prefixes,down,up,site\n{list}");
    let errors = parse(&list, ("s.csv", &format!("id,parent,down,up\n{sites}"))).unwrap_err();
    let located = errors.located();
    assert_eq!(located.len(), 20);
    assert_eq!(located[19].help.as_deref(), Some("19980 further errors are not shown"));
    let orphans: String = (0..20_000).map(|n| format!("Tower {n},gone {n},100Mbit,50Mbit\n")).collect();
    assert!(parse(&list, ("s.csv", &format!("id,parent,down,up\n{orphans}"))).is_err());
    let child = |n: usize| format!("\"Tower {n}\":{{\"type\":\"AP\"}}");
    let children = (0..5_000).map(child).collect::<Vec<_>>().join(",");
    let sites = format!(
        "{{\"Top\":{{\"downloadBandwidthMbps\":100,\"uploadBandwidthMbps\":50,\"children\":{{{children}}}}}}}"
    );
    let one = "id,prefixes,down,up\n1,100.96.0.1,1Mbit,1Mbit\n";
    let file = parse(one, ("s.json", &sites)).unwrap();
    assert_eq!(file.notes.len(), 5_000);
    assert_eq!(file.notes[1].column, sites.find("\"Tower 1\"").unwrap() + 1);
    let keys: String = (0..30_000).map(|n| format!(",\"key {n}\":0")).collect();
    let sites = format!("{{\"Top\":{{\"downloadBandwidthMbps\":100,\"uploadBandwidthMbps\":50{keys}}}}}");
    assert_eq!(parse(one, ("s.json", &sites)).unwrap().notes.len(), 30_000);
    assert!(begin.elapsed().as_secs() < 100, "{:?}", begin.elapsed());
}

#[test]
fn rows_without_an_address_are_left_out_and_identifiers_kept() {
    let file = read("waiting.csv", None).unwrap();
    assert_eq!(
        customers(&file),
        ["12 Main/B [100.73.0.2/32] 60000000/20000000 ", "1001.2 [2001:db8:73::/56] 60000000/20000000 "]
    );
    let classes: Vec<&str> = file.gateway.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(classes, ["12_Main_B-up", "12_Main_B-down", "1001_2-up", "1001_2-down"]);
    assert_eq!(
        places(&file.notes),
        [
            "waiting.csv:2:43: customer \"ann@isp.example\" has no address here",
            "waiting.csv:4:40: customer \"12 Main/B\" has no address here"
        ]
    );
    let file = read("own.csv", Some("own-sites.csv")).unwrap();
    assert_eq!(
        customers(&file),
        [
            "17 [10.80.1.0/24 2001:db8:80::/48] 50000000/10000000 Roof & Yard",
            "19/b [10.80.2.7/32 10.80.2.9/32] 2500000/512000 "
        ]
    );
    assert_eq!(places(&file.notes), ["own.csv:3:8: customer \"18\" has no address here"]);
}

/// Expected values: RFC 6890.
#[test]
fn addresses_that_no_customer_has_are_left_out_by_row() {
    let file = read("special.csv", None).unwrap();
    assert_eq!(
        customers(&file),
        ["1 [100.76.0.1/32] 20000000/5000000 ", "2 [2001:db8:76:2::/64] 20000000/5000000 "]
    );
    assert_eq!(
        places(&file.notes),
        [
            "special.csv:2:23: 224.0.0.5/32 is multicast",
            "special.csv:3:23: 169.254.7.7/32 is link-local",
            "special.csv:3:36: ::1/128 is loopback",
            "special.csv:4:16: 255.255.255.255/32 is broadcast",
            "special.csv:4:16: customer \"3\" has no address here",
            "special.csv:5:16: 0.0.0.0/0 is every address",
            "special.csv:5:16: customer \"4\" has no address here",
            "special.csv:5:26: ::/0 is every address",
            "special.csv:6:14: customer \"5\" has no address here",
            "special.csv:6:15: fe80::5/128 is link-local",
        ]
    );
    let file = read("special-own.csv", None).unwrap();
    assert_eq!(customers(&file), ["1 [100.76.0.1/32] 20000000/5000000 "]);
    assert_eq!(
        places(&file.notes),
        [
            "special-own.csv:3:15: 0.0.0.0/0 is every address",
            "special-own.csv:3:15: customer \"everyone else\" has no address here",
        ]
    );
}

/// A spreadsheet rounds identifiers of six digits: two customers would share one rate in silence.
#[test]
fn rows_of_one_circuit_have_one_name() {
    let file = read("spreadsheet.csv", None).unwrap();
    assert_eq!(
        customers(&file),
        [
            "1.00E+05 [100.78.0.1/32 100.78.0.2/32] 20000000/5000000 ",
            "7 [100.78.0.3/32 100.78.0.4/32] 20000000/5000000 "
        ]
    );
    let expected = "spreadsheet.csv:3:10: circuit \"1.00E+05\" has another name here: \"Ben\"";
    assert_eq!(places(&file.notes), [expected]);
}

/// A name that two sites have besides their own means neither.
#[test]
fn a_name_of_two_sites_is_none() {
    let file = read("aliases.csv", Some("aliases.json")).unwrap();
    assert_eq!(
        customers(&file),
        ["1 [100.79.0.1/32] 20000000/5000000 ", "2 [100.79.0.2/32] 20000000/5000000 AP 3"]
    );
    let expected = "aliases.csv:2:13: no site is \"Roof\": the customer's rates hold, below no site";
    assert_eq!(places(&file.notes), [expected]);
}

/// Customers choose names, and an identifier may be one.
#[test]
fn names_cannot_write_to_a_terminal() {
    let file = read("escapes.csv", None).unwrap();
    let notes: Vec<String> = file.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|note| !note.contains(['\x1b', '\n', '\u{202e}'])), "{notes:?}");
    assert!(notes[0].contains(r"2\u{1b}[2J\u{a}note: all is well"), "{}", notes[0]);
    let text = "name = 'x\u{1b}[2J'\nduration = 1\u{202e}s\n";
    let errors = weir::experiment::config::parse(&Source::new("e.toml", text)).unwrap_err().to_string();
    assert!(!errors.contains(['\x1b', '\u{202e}']), "{errors:?}");
}

/// Hashes: FNV-1a of 32 bits over UTF-8, computed apart.
#[test]
fn names_in_other_scripts_have_classes_of_their_own() {
    let file = read("scripts.csv", Some("scripts.json")).unwrap();
    assert_eq!(
        customers(&file),
        ["Ив-1 [100.77.0.1/32] 20000000/5000000 Север", "Мя-1 [100.77.0.2/32] 20000000/5000000 Запад"]
    );
    let classes: Vec<&str> = file.gateway.classes.iter().map(|class| class.name.as_str()).collect();
    for id in ["Ив-1", "Мя-1", "Север", "Запад"] {
        let hash = id
            .bytes()
            .fold(2_166_136_261_u64, |hash, byte| (hash ^ u64::from(byte)) * 16_777_619 % (1 << 32));
        let ascii: String = id.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
        assert!(classes.contains(&format!("{ascii}-{hash:08x}-down").as_str()), "{id}: {classes:?}");
    }
}

#[test]
fn names_are_read_in_each_encoding() {
    for list in ["latin-1.csv", "utf-16.csv", "utf-16-bare.csv", "utf-8-mark.csv"] {
        let file = read(list, None).unwrap();
        assert_eq!(customers(&file), ["5 [100.75.0.5/32] 10000000/2000000 "], "{list}");
        assert_eq!(file.customers[0].name, "Gasthof Krähe", "{list}");
    }
}

#[test]
fn what_does_not_say_what_it_means_is_refused_with_its_place() {
    for (list, sites, expected) in [
        ("blank-before-quote.csv", None, &["blank-before-quote.csv:3:4: a quote behind a blank"][..]),
        (
            "comma-in-name.csv",
            None,
            &[
                "comma-in-name.csv:3:28: column \"IPv6\": \"100.74.0.2/32\" is an IPv4 address",
                "comma-in-name.csv:4:29: column \"Download Min Mbps\": \"2001:db8:74::/56\" is not a rate",
                "comma-in-name.csv:5:24: column \"Download Min Mbps\": \"100.74.0.4\" is not a rate",
            ],
        ),
        ("open-quote.csv", None, &["open-quote.csv:2:37: a quote that is never closed"]),
        ("inner-quote.csv", None, &["inner-quote.csv:2:9: \"A\" behind a closing quote"]),
        ("columns-missing.csv", None, &["columns-missing.csv:2:1: a row with 13 fields under 15 columns"]),
        (
            "addresses-unquoted.csv",
            None,
            &["addresses-unquoted.csv:2:27: column \"IPv6\": \"100.74.0.9/32\" is an IPv4 address"],
        ),
        (
            "one-name.csv",
            None,
            &["one-name.csv:3:1: the classes of customer \"12_Main_B\" would be called as those of \"12 Main/B\" in line 2"],
        ),
        ("heading.csv", None, &["heading.csv:1:47: unknown column \"Parnt Node\""]),
        ("decimal-comma.csv", None, &["decimal-comma.csv:2:31: column \"Download Max Mbps\": \"10,5\" is not a rate"]),
        (
            "numbers.csv",
            None,
            &[
                "numbers.csv:2:37: column \"Download Max Mbps\": \"1_000\" is not a rate",
                "numbers.csv:3:37: column \"Download Max Mbps\": \"1,000\" is not a rate",
                "numbers.csv:4:37: column \"Download Max Mbps\": \"1 000\" is not a rate",
                "numbers.csv:5:39: column \"Download Max Mbps\": \"0x10\" is not a rate",
                "numbers.csv:6:35: column \"Download Max Mbps\": \"inf\" is not a rate",
                "numbers.csv:7:36: column \"Upload Max Mbps\": \"nan\" is not a rate",
                "numbers.csv:8:38: column \"Download Max Mbps\": \"１００\" is not a rate",
                "numbers.csv:9:18: column \"IPv4\": \"100.75.0.8/+30\" is not an IP prefix",
            ],
        ),
        (
            "no-header.csv",
            None,
            &["no-header.csv:1:1: the first row is not the header: it names no column"],
        ),
        (
            "header-comment.csv",
            None,
            &["header-comment.csv:2:1: the first row is not the header: it names no column"],
        ),
        ("sep.csv", None, &["sep.csv:1:1: the first row is not the header: it names no column"]),
        ("nobody.csv", None, &["nobody.csv:1:1: a list in which nobody can be shaped"]),
        ("own-quote.csv", None, &["own-quote.csv:2:5: a quote behind a blank"]),
        ("twice.csv", Some("twice.json"), &["twice.json:2:3: site \"A\" is there twice"]),
        (
            "groups.csv",
            Some("groups.json"),
            &["groups.json:2:3: site \"Roof\" has no `downloadBandwidthMbps`, nor has a site above it"],
        ),
        ("twice.csv", Some("virtaul.json"), &["virtaul.json:1:66: site \"A\": unknown key `virtaul`"]),
        ("twice.csv", Some("outside.json"), &["outside.json:2:3: site \"A\": unknown key `B`"]),
    ] {
        match read(list, sites) {
            Ok(file) => panic!("{list}: accepted: {:?}", customers(&file)),
            Err(errors) => assert_eq!(places(&errors.located()), expected, "{list}"),
        }
    }
    for (list, help) in [
        ("semicolons.csv", "columns are separated by commas, not by semicolons"),
        ("tabs.csv", "columns are separated by commas, not by tabs"),
    ] {
        assert_eq!(read(list, None).unwrap_err().located()[0].help.as_deref(), Some(help));
    }
}

/// All files of the corpus, and what becomes of them where a few bytes are others.
#[test]
fn what_is_accepted_means_what_an_independent_reader_finds() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lists"));
    let read = |name: &str| Source::read_list(&directory.join(name)).unwrap().text;
    let pairs = [
        ("older.csv", None),
        ("quoted.csv", Some("quoted.json")),
        ("serialized.csv", Some("serialized.json")),
        ("waiting.csv", None),
        ("comma-in-name.csv", None),
        ("own.csv", Some("own-sites.csv")),
        ("special.csv", None),
        ("scripts.csv", Some("scripts.json")),
        ("special-own.csv", None),
        ("heading-twice.csv", None),
        ("spreadsheet.csv", None),
        ("groups.csv", Some("groups.json")),
        ("old-mac.csv", Some("old-mac-sites.csv")),
        ("mixed-ends.csv", None),
        ("none.csv", Some("none-sites.csv")),
    ];
    let (mut random, mut accepted) = (slips::Random(1), 0);
    for (list, sites) in pairs {
        let (list, sites) = (read(list), sites.map(|name| (name, read(name))));
        for round in 0..800 {
            let (mut text, mut above) = (list.clone(), sites.clone());
            if round > 0 {
                text = slips::mutated(&text, &mut random);
                above = above.map(|(name, text)| (name, slips::mutated(&text, &mut random)));
            }
            let above = above.as_ref().map(|(name, text)| (*name, text.as_str()));
            accepted += usize::from(law::holds(&text, above));
        }
    }
    assert!(accepted > 400, "only {accepted} lists were accepted");
}

/// Errors of a list have their places there, and come alone: keys that name the list's classes cannot be
/// judged without them. The files have a class below one of the list, a check of a customer's class, and
/// nothing that controls anything.
#[test]
fn errors_of_a_list_come_first_and_alone() {
    let wrong = "heading.csv:1:47: unknown column \"Parnt Node\"";
    let customers = "[gateway.customers]\nfile = \"heading.csv\"\n";
    let below =
        "[[gateway.class]]\nname = \"guests\"\nparent = \"Mast-up\"\nrate = \"1Mbit\"\nqueue = \"64kB\"\n";
    let beside = |name: &str, text: &str| {
        let path = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lists/{}.toml"), name);
        Source::new(path, text)
    };
    let experiment = format!(
        "name = \"t\"\nduration = \"1s\"\n[path]\nrtt = \"20ms\"\n[[flow]]\nid = \"a\"\n{customers}\
         [[expect]]\nwhat = \"class.1-up.bps\"\nop = \"at_most\"\ntarget = \"1Mbit\"\n"
    );
    let sweep = "[sweep]\nseed = [1, 2]\n";
    let baseline = "[baseline]\nother = { seed = 2 }\n";
    for more in ["", below, sweep, baseline] {
        let errors = runs(&beside("t", &format!("{experiment}{more}"))).unwrap_err();
        assert_eq!(places(&errors.located()), [wrong], "{more}");
    }
    for more in ["", below, "[[gateway.class]]\nname = \"guests\"\nrat = \"1Mbit\"\n"] {
        let text = format!("[ports]\ndev = \"eth1\"\n{customers}{more}");
        let errors = gateway::parse(&beside("gateway", &text)).unwrap_err();
        assert_eq!(places(&errors.located()), [wrong], "{more}");
    }
    // Customers below sites that are not there, and neither of both lists.
    for (named, keys) in [(["own.csv", "no.csv"], &["sites"][..]), (["no.csv", "no.csv"], &["file", "sites"])]
    {
        let [file, sites] = named.map(|name| format!("\"{name}\""));
        let lists = format!("[gateway.customers]\nfile = {file}\nsites = {sites}\n{below}");
        let errors =
            gateway::parse(&beside("gateway", &format!("[ports]\ndev = \"eth1\"\n{lists}"))).unwrap_err();
        let said = places(&errors.located());
        assert_eq!(said.len(), keys.len(), "{said:?}");
        for (said, key) in said.iter().zip(keys) {
            assert!(
                said.contains(&format!("`gateway.customers.{key}`: ")) && said.contains("no.csv: No such"),
                "{said}"
            );
        }
    }
}
