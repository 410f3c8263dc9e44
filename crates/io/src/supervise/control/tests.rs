use super::*;
use crate::supervise::state::tests::Temporary;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// Echoes what is asked; "ask" is passed on to the engine.
#[derive(Default)]
struct Echo {
    hangups: u32,
}

impl Operator for Echo {
    fn request(&mut self, line: &str, engine: Option<&Letters>) -> Option<Vec<u8>> {
        if line == "ask" {
            engine?.send(b"what").unwrap();
            return None;
        }
        if line == "long" {
            return Some(vec![b'x'; 3_000_000]);
        }
        Some(format!("you said {line}").into())
    }
    fn hangup(&mut self, _: Option<&Letters>) -> bool {
        self.hangups += 1;
        false
    }
    fn heard(&mut self, letter: &[u8]) -> Option<Vec<u8>> {
        Some(letter.to_vec())
    }
    fn unheard(&mut self, gone: bool) -> Vec<u8> {
        format!("gone: {gone}").into()
    }
}

struct Rig {
    temporary: Temporary,
    control: Control,
    operator: Echo,
}

impl Rig {
    fn new(name: &str) -> Rig {
        let temporary = Temporary::new(name);
        let listener = Listener::open(temporary.open(), "x").unwrap();
        Rig { temporary, control: Control::new(Some(listener)), operator: Echo::default() }
    }
    fn client(&self, says: &str) -> UnixStream {
        let mut stream = UnixStream::connect(self.temporary.open().socket("x")).unwrap();
        stream.write_all(says.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }
    fn serve(&mut self) {
        self.control.serve(true, &mut self.operator);
    }
    /// Serves until there is an answer.
    fn answer(&mut self, mut client: UnixStream) -> String {
        let (mut said, mut part) = (Vec::new(), [0; 65_536]);
        loop {
            self.serve();
            match client.read(&mut part) {
                Ok(0) => return String::from_utf8(said).unwrap(),
                Ok(count) => said.extend(&part[..count]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }
}

#[test]
fn each_client_asks_once_and_a_stuck_one_is_in_nobodys_way() {
    let mut rig = Rig::new("ctl-ask");
    let stuck = rig.client("show");
    rig.serve();
    let client = rig.client("show 10.1.2.3\nand more");
    assert_eq!(rig.answer(client), "you said show 10.1.2.3");
    let client = rig.client("long\n");
    assert_eq!(rig.answer(client).len(), 3_000_000);
    // One that reads nothing keeps a place for a while.
    let deaf = rig.client("long\n");
    rig.serve();
    let client = rig.client("x\n");
    assert_eq!(rig.answer(client), "you said x");
    drop((stuck, deaf));
}

#[test]
fn a_line_without_an_end_and_a_crowd_are_not_waited_for() {
    let mut rig = Rig::new("ctl-crowd");
    let client = rig.client(&"x".repeat(5_000));
    assert_eq!(rig.answer(client), "");
    let _crowd: Vec<UnixStream> = (0..10).map(|_| rig.client("sh")).collect();
    rig.serve();
    let _more: Vec<UnixStream> = (0..10).map(|_| rig.client("sh")).collect();
    rig.serve();
    let client = rig.client("me\n");
    assert_eq!(rig.answer(client), "you said me");
    assert!(rig.control.clients.len() <= 16);
}

#[test]
fn requests_that_wait_for_the_engine_are_served_one_by_one() {
    let mut rig = Rig::new("ctl-engine");
    let engine = rig.control.connect(&mut rig.operator).unwrap().unwrap();
    let (one, two) = (rig.client("ask\n"), rig.client("two\n"));
    rig.serve();
    rig.control.hang_up();
    rig.serve();
    assert_eq!(rig.operator.hangups, 0);
    assert_eq!(engine.take().unwrap().unwrap(), b"what");
    engine.send(b"that").unwrap();
    assert_eq!(rig.answer(one), "that");
    assert_eq!(rig.answer(two), "you said two");
    assert_eq!(rig.operator.hangups, 1);
    // An engine that ends.
    let three = rig.client("ask\n");
    rig.serve();
    drop(engine);
    assert_eq!(rig.answer(three), "gone: true");
}

#[test]
fn the_file_is_roots_replaced_and_removed() {
    let rig = Rig::new("ctl-file");
    let path = rig.temporary.open().socket("x");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut first = rig.control;
    // As after kill -9: the file stays.
    first.leave_to_parent();
    assert!(path.exists() && UnixStream::connect(&path).is_err());
    let second = Listener::open(rig.temporary.open(), "x").unwrap();
    assert!(UnixStream::connect(&path).is_ok());
    drop(second);
    assert!(!path.exists());
}
