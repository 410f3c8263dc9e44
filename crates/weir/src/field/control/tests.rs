//! The desk, with an engine that the tests play.

use super::letter::{FromEngine, ToEngine};
use super::*;
use crate::experiment::config::{Settings, Source};
use std::path::PathBuf;
use weir_core::rate::Rate;
use weir_io::supervise::{Letters, Operator};

const FILE: &str = r#"[ports]
dev = "eth1"
[gateway]
max_flows = 1000
[[gateway.class]]
name = "up"
ack = { preset = "ack-shaper", flow_rate = "10Mbit" }
"#;

/// Temporary file, removed at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let file = File(std::env::temp_dir().join(format!("weir-desk-{}-{name}.toml", std::process::id())));
        file.write(FILE);
        file
    }
    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }
    fn running(&self) -> Running {
        let version = Version::read(Source::read(&self.0).unwrap()).unwrap();
        Running::new(version, Some(self.0.clone()), 7)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn rate(running: &Running) -> Rate {
    running.version().file.gateway.classes[0].ack.unwrap().release.rate()
}

fn answer(bytes: Option<Vec<u8>>) -> Answer {
    serde_json::from_slice(&bytes.expect("an answer at once")).unwrap()
}

#[test]
fn a_change_runs_when_the_engine_has_it() {
    let file = File::new("engine");
    let running = file.running();
    let mut desk = Desk::new(&running);
    let (here, there) = Letters::pair().unwrap();
    assert_eq!(desk.request("set class/up.ack.flow_rate=20Mbit", Some(&here)), None);
    let (number, asked) = ToEngine::read(&there.take().unwrap().unwrap()).unwrap();
    let ToEngine::Configure { sources, settings } = asked else { panic!("{asked:?}") };
    // The engine's thread gets the same result.
    let theirs = Version::parse(sources, settings).unwrap();
    assert_eq!(theirs.file.gateway.classes[0].ack.unwrap().release.rate(), Rate::mbit(20));
    assert_eq!(rate(&running), Rate::mbit(10));
    assert_eq!(desk.heard(&FromEngine::Configured.write(number + 1)), None, "of another question");
    let said = answer(desk.heard(&FromEngine::Configured.write(number)));
    assert_eq!((said.ok, said.text.as_str()), (true, "changed up; 0 classes as before"));
    assert_eq!(rate(&running), Rate::mbit(20));
    // A version that the engine refuses does not run.
    assert_eq!(desk.request("set class/up.ack.flow_rate=30Mbit", Some(&here)), None);
    let said = answer(desk.heard(&FromEngine::Refused("too many classes").write(number + 1)));
    assert_eq!((said.ok, said.text.as_str(), rate(&running)), (false, "too many classes", Rate::mbit(20)));
    // When the engine ends, the next one starts with the version.
    assert_eq!(desk.request("set class/up.ack.flow_rate=40Mbit", Some(&here)), None);
    assert!(answer(Some(desk.unheard(true))).ok);
    assert_eq!(rate(&running), Rate::mbit(40));
    assert_eq!(running.take()[0].config.config().seed, 7);
}

#[test]
fn reading_again_undoes_what_was_set() {
    let file = File::new("again");
    let running = file.running();
    let mut desk = Desk::new(&running);
    assert!(answer(desk.request("set class/up.ack.flow_rate=20Mbit", None)).ok);
    assert_eq!(rate(&running), Rate::mbit(20));
    let said = answer(desk.request("reload", None));
    assert!(said.ok && said.text.contains("no longer set: class/up.ack.flow_rate=20Mbit"), "{said:?}");
    assert_eq!(rate(&running), Rate::mbit(10));
    assert_eq!(answer(desk.request("reload", None)).text, "nothing has changed");
}

#[test]
fn what_is_wrong_or_cannot_change_changes_nothing() {
    let file = File::new("wrong");
    let running = file.running();
    let mut desk = Desk::new(&running);
    let before = running.version().file.clone();
    for (from, to, why) in [
        ("10Mbit", "10MB", "unknown unit `MB` in the rate"),
        ("eth1", "eth2", "`ports.dev` cannot change while Weir runs: it is eth1, and eth2"),
        ("\"eth1\"", "\"eth1\"\ncpu = 1", "`ports.cpu` cannot change while Weir runs: it is none, and 1"),
        ("1000", "2000", "`gateway.max_flows` cannot change while Weir runs: it is 1000, and 2000"),
        ("\"up\"", "\"up\"\ndirection = \"in\"", "no class of direction \"in\" controlled ACKs"),
        (
            "[[gateway.class]]",
            "[gateway.customers]\nfile = \"no.csv\"\n[[gateway.class]]",
            "no.csv: No such file",
        ),
    ] {
        file.write(&FILE.replacen(from, to, 1));
        let said = answer(desk.request("reload", None));
        assert!(!said.ok && said.wrong && said.text.contains(why), "{to}: {said:?}");
        assert_eq!(running.version().file, before);
    }
    // An error in the file is answered with its place.
    file.write(&FILE.replacen("10Mbit", "10MB", 1));
    let said = answer(desk.request("reload", None));
    assert_eq!(said.errors.iter().map(|e| e.line).collect::<Vec<_>>(), [7]);
    file.write(FILE);
    for wrong in
        ["", "sho", "set", "show 10.1", "off", "off 17", "set class/up.name=x", "set class/no.rate=1Mbit"]
    {
        assert!(answer(desk.request(wrong, None)).wrong, "{wrong}");
    }
    assert!(!answer(desk.request("show", None)).ok, "no engine runs");
    // A name is told as it was written.
    for request in ["show 10.1.0.3.4", "show Ada  Smith", "off 12 Main/B"] {
        let name = request.split_once(' ').unwrap().1;
        let said = answer(desk.request(request, None)).text;
        assert!(said.contains(&format!("`{name}`")) || said.contains(&format!("\"{name}\"")), "{said}");
    }
    assert_eq!(running.version().file, before);
    assert!(Version::parse(vec![Source::new("g.toml", FILE)], Settings::default()).is_ok());
}

/// A list that `weir check` accepts runs: other programs write names in Latin-1 and begin with a mark.
#[test]
fn lists_of_a_running_gateway_are_read_in_each_encoding() {
    let file = File::new("latin-1");
    let list = file.0.with_extension("csv");
    std::fs::write(&list, b"\xef\xbb\xbfid,name,prefixes,down,up\n17,M\xfcller,10.1.0.1,5Mbit,1Mbit\n")
        .unwrap();
    file.write(&format!("[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"{}\"\n", list.display()));
    let version = Version::read(Source::read(&file.0).unwrap());
    std::fs::remove_file(&list).unwrap();
    assert_eq!(version.unwrap().file.customers[0].name, "Müller");
}

#[test]
fn a_request_that_is_none_is_told_short_and_without_control_characters() {
    let file = File::new("noise");
    let running = file.running();
    let mut desk = Desk::new(&running);
    let said = answer(desk.request(&"\0\u{1b}[31m".repeat(600), None));
    assert!(said.wrong && said.text.len() < 300 && !said.text.contains(char::is_control), "{}", said.text);
    assert!(
        said.text.starts_with("`\\u{0}\\u{1b}[31m") && said.text.contains("is not a request"),
        "{}",
        said.text
    );
    let busy = answer(Some(desk.refusal("busy")));
    assert_eq!((busy.ok, busy.wrong, busy.text.as_str()), (false, false, "busy"));
}

#[test]
fn a_file_that_is_a_pipe_by_now_is_not_waited_for() {
    let file = File::new("pipe");
    let running = file.running();
    std::fs::remove_file(&file.0).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file.0, rustix::fs::Mode::RUSR).unwrap();
    let refused = || {
        let said = answer(Desk::new(&running).request("reload", None));
        assert!(said.wrong && said.text.contains("is no regular file"), "{}", said.text);
    };
    refused();
    // A list that the file names is a pipe, too.
    let list = file.0.with_extension("csv");
    std::fs::rename(&file.0, &list).unwrap();
    file.write(&format!("[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"{}\"\n", list.display()));
    refused();
    std::fs::remove_file(&list).unwrap();
}
