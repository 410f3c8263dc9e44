use super::super::super::metrics::{listen, place};
use super::*;
use crate::result::quality::Scores;
use crate::result::traffic::{Load, Traffic};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\n\u{2028}\"";

fn row(name: &str, direction: &str, bps: f64) -> Traffic {
    let load = Load { bps, bytes: 1_000, ..Load::default() };
    Traffic {
        kind: Kind::Customer,
        name: name.into(),
        direction: direction.into(),
        load,
        ..Traffic::default()
    }
}

fn report(rows: &[Traffic]) -> GatewayReport {
    GatewayReport { schema: 2, traffic: rows.to_vec(), wall_s: 5.0, ..GatewayReport::default() }
}

/// Serves in the background.
fn begin() -> (Arc<Shared>, SocketAddr) {
    let at = place("127.0.0.1:0").unwrap();
    let server = listen(&at).unwrap();
    let address = server.server_addr().to_ip().unwrap();
    let shared = Arc::new(Shared::default());
    let serving = shared.clone();
    std::thread::spawn(move || serve(&server, &serving, &Names::new(&at, &["weir.example".into()])));
    (shared, address)
}

fn ask(address: SocketAddr, request: &str, host: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(client, "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    client
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut said = String::new();
    ask(address, &format!("GET {path}"), "localhost:1").read_to_string(&mut said).unwrap();
    said
}

fn json(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn files_and_the_api_are_served_and_nothing_is_changed() {
    let (shared, address) = begin();
    let page = get(address, "/");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>Weir</title>"), "{page}");
    assert!(page.contains("default-src 'none'") && page.contains("nosniff"), "{page}");
    assert!(get(address, "/api/v1/report").starts_with("HTTP/1.1 503"));
    shared.heard(Ok(report(&[row("17", "in", 5.0)])), true, Duration::ZERO);
    let report = json(&get(address, "/api/v1/report"));
    assert_eq!((&report["schema"], &report["traffic"][0]["name"]), (&2.into(), &"17".into()));
    let history = json(&get(address, "/api/v1/history?kind=customer&name=%31%37"));
    assert_eq!(history["step_s"], 300);
    let unknown = get(address, "/api/v1/history?kind=customer&name=18");
    assert!(unknown.starts_with("HTTP/1.1 404") && unknown.contains("no such thing"), "{unknown}");
    for wrong in ["", "?kind=customer", "?kind=dog&name=a", "?kind=link&name=%zz", "?kind=link&name=%f"] {
        assert!(get(address, &format!("/api/v1/history{wrong}")).starts_with("HTTP/1.1 400"), "{wrong}");
    }
    assert!(get(address, "/api/v2/report").starts_with("HTTP/1.1 404"));
    let mut said = String::new();
    ask(address, "POST /api/v1/report", "localhost").read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 405"), "{said}");
    // The description names what there is.
    let described = json(&get(address, "/api/v1/openapi.json"));
    for path in described["paths"].as_object().unwrap().keys().filter(|path| !path.ends_with("stream")) {
        assert!(!get(address, path).starts_with("HTTP/1.1 404"), "{path}");
    }
    let load = Load { score: Some(Scores { web: 1, call: 2, game: 3 }), ..Load::default() };
    let row = Traffic {
        title: "Ada".into(),
        parent: Some("tower".into()),
        off: true,
        load,
        ..row("17", "in", 1.0)
    };
    let state = serde_json::from_str(&Live::default().state()).unwrap();
    for (schema, said) in [("Row", serde_json::to_value(row).unwrap()), ("State", state)] {
        let described = described["components"]["schemas"][schema]["properties"].as_object().unwrap();
        let keys: Vec<&String> = said.as_object().unwrap().keys().collect();
        assert!(keys.iter().all(|key| described.contains_key(*key)), "{schema}: {keys:?}");
    }
}

/// The name of another site may lead to this address (DNS rebinding).
#[test]
fn a_page_of_another_name_is_refused() {
    let (_, address) = begin();
    for (host, status) in [
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("WEIR.example", 200),
        ("[::1]:8650", 200),
        ("", 421),
    ] {
        let mut said = String::new();
        ask(address, "GET /", host).read_to_string(&mut said).unwrap();
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {said}");
    }
}

fn event(from: &mut impl BufRead) -> serde_json::Value {
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert!(from.read_line(&mut line).unwrap() > 0, "the stream ended");
    }
    serde_json::from_str(&line[6..]).unwrap()
}

#[test]
fn the_stream_tells_what_has_changed() {
    let (shared, address) = begin();
    let all = [row("1", "in", 1.0), row("1", "out", 2.0), row(HOSTILE, "in", 3.0)];
    shared.heard(Ok(report(&all)), true, Duration::ZERO);
    let mut stream = BufReader::new(ask(address, "GET /api/v1/stream", "localhost"));
    let first = event(&mut stream);
    assert_eq!((&first["begins"], first["traffic"].as_array().unwrap().len()), (&true.into(), 3));
    // Nothing of a name is markup, a line of its own, or lost.
    assert_eq!(first["traffic"][2]["name"], HOSTILE);
    assert!(shared.has_clients());
    // One row is another one; the hostile one is idle, and not among the busiest.
    let next = [row("1", "in", 9.0), row("1", "out", 2.0)];
    shared.heard(Ok(report(&next)), false, Duration::from_secs(1));
    let second = event(&mut stream);
    let told: Vec<(&str, f64)> = second["traffic"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["bps"].as_f64().unwrap()))
        .collect();
    assert_eq!((&second["begins"], told), (&false.into(), vec![("1", 9.0), (HOSTILE, 0.0)]));
    // A row that is in no list any more makes clients begin again.
    shared.heard(Ok(report(&next)), true, Duration::from_secs(2));
    let third = event(&mut stream);
    assert_eq!((&third["begins"], third["traffic"].as_array().unwrap().len()), (&true.into(), 2));
    shared.heard(Err("no gateway runs".into()), true, Duration::from_secs(3));
    let fourth = event(&mut stream);
    assert_eq!(fourth["state"]["failure"], "no gateway runs");
    assert_eq!(fourth["state"]["events"][0]["text"], "no answer: no gateway runs");
    drop(stream);
    for second in 0..50 {
        shared.heard(Ok(report(&next)), true, Duration::from_secs(4 + second));
        std::thread::sleep(Duration::from_millis(20));
        if !shared.has_clients() {
            return;
        }
    }
    panic!("a client that has gone is still counted");
}

/// A machine that is busy has ten times as long as an idle one takes.
#[test]
fn ten_thousand_customers_come_in_parts() {
    let rows = |bps: f64| -> Vec<Traffic> {
        (0..20_000).map(|n| row(&(n / 2).to_string(), if n % 2 == 0 { "in" } else { "out" }, bps)).collect()
    };
    let shared = Shared::default();
    shared.heard(Ok(report(&rows(1.0))), true, Duration::ZERO);
    let (mut heard, mut number, mut got) = (Heard::default(), u64::MAX, 0);
    for _ in 0..10 {
        let begin = std::time::Instant::now();
        let news: serde_json::Value =
            serde_json::from_str(&shared.wait(&mut heard, &mut number).unwrap()).unwrap();
        assert!(begin.elapsed().as_secs() < 5);
        let part = news["traffic"].as_array().unwrap().len();
        assert!(part <= 2_000);
        got += part;
        number = u64::MAX;
    }
    assert_eq!(got, 20_000);
    let news: serde_json::Value =
        serde_json::from_str(&shared.wait(&mut heard, &mut number).unwrap()).unwrap();
    assert_eq!(news["traffic"].as_array().unwrap().len(), 0);
}

#[test]
fn older_history_is_prometheuss() {
    let (_, address) = begin();
    let week = "/api/v1/history?kind=link&name=wan0&hours=168";
    let none = get(address, week);
    assert!(none.starts_with("HTTP/1.1 404") && none.contains("--history"), "{none}");
    for wrong in ["hours=0", "hours=x", "hours=87601"] {
        let path = format!("/api/v1/history?kind=link&name=wan0&{wrong}");
        assert!(get(address, &path).starts_with("HTTP/1.1 400"), "{wrong}");
    }
    // Nothing listens at this port any more.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let at = place("127.0.0.1:0").unwrap();
    let server = listen(&at).unwrap();
    let address = server.server_addr().to_ip().unwrap();
    let shared = Arc::new(Shared::new(Some(Prometheus::new(&format!("http://{free}"), ""))));
    let mut link = row("wan0", "in", 5.0);
    link.kind = Kind::Link;
    shared.heard(Ok(report(&[link])), true, Duration::ZERO);
    std::thread::spawn(move || serve(&server, &shared, &Names::new(&at, &[])));
    let away = get(address, week);
    assert!(away.starts_with("HTTP/1.1 502") && away.contains("does not answer"), "{away}");
    // A day is the page's own.
    assert!(get(address, "/api/v1/history?kind=link&name=wan0&hours=24").starts_with("HTTP/1.1 200"));
}

/// Relative luminance and contrast of WCAG 2.2 (1.4.3 and 1.4.11).
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |colour: &str| {
        let channel = |at: usize| {
            let c = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    };
    let (a, b) = (luminance(one), luminance(other));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn texts_and_lines_can_be_told_from_their_ground() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    let style = include_str!("../page/style.css");
    let themes: Vec<&str> =
        style.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    assert_eq!(themes.len(), 2, "light and dark");
    for theme in themes {
        let colour = |name: &str| {
            let at = theme.find(&format!("--{name}: ")).unwrap_or_else(|| panic!("{name}"));
            theme[at..].split([' ', ';']).nth(1).unwrap()
        };
        for ground in ["paper", "stripe"] {
            for text in ["ink", "soft", "mark", "full"] {
                let found = contrast(colour(text), colour(ground));
                assert!(found >= 4.5, "{text} on {ground}: {found:.2}");
            }
            for line in ["down", "up", "edge"] {
                let found = contrast(colour(line), colour(ground));
                assert!(found >= 3.0, "{line} on {ground}: {found:.2}");
            }
        }
    }
}
