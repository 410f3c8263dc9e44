use super::clients::MOST;
use super::*;
use crate::supervise::state::tests::Temporary;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// Operator that echoes requests and passes "ask" on to the engine.
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
        assert!(line != "panic", "as told");
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
    fn refusal(&mut self, why: &str) -> Vec<u8> {
        why.into()
    }
    fn done(&mut self, text: &str) -> Vec<u8> {
        text.into()
    }
    fn state(&self) -> Option<String> {
        None
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
        let listener = Listener::open(temporary.open(), "5").unwrap();
        Rig { temporary, control: Control::new(Some(listener)), operator: Echo::default() }
    }
    fn client(&self, says: &str) -> UnixStream {
        let mut stream = UnixStream::connect(self.temporary.open().socket("5")).unwrap();
        stream.write_all(says.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }
    fn serve(&mut self) {
        self.control.serve(true, &mut self.operator);
    }
    /// Serves until the client has its answer.
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
    let client = rig.client("show 10.1.2.3\n");
    assert_eq!(rig.answer(client), "you said show 10.1.2.3");
    // Nothing of what would be answered in part is carried out.
    for several in ["show 10.1.2.3\nand more", "show\nshow\n", "show\n\n"] {
        let client = rig.client(several);
        assert!(rig.answer(client).contains("one request for each connection"), "{several:?}");
    }
    let client = rig.client("long\n");
    assert_eq!(rig.answer(client).len(), 3_000_000);
    // A client that reads nothing occupies a place for a while.
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
    let _crowd: Vec<UnixStream> = (0..MOST).map(|_| rig.client("sh")).collect();
    rig.serve();
    let _more: Vec<UnixStream> = (0..10).map(|_| rig.client("sh")).collect();
    rig.serve();
    // Silent clients make room.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let client = rig.client("me\n");
    assert_eq!(rig.answer(client), "you said me");
    assert!(rig.control.clients.len() <= MOST);
}

#[test]
fn whoever_has_asked_keeps_his_place_and_one_too_many_is_told_so() {
    let mut rig = Rig::new("ctl-busy");
    let engine = rig.control.connect(&mut rig.operator).unwrap().unwrap();
    let mut asked: Vec<UnixStream> = (0..MOST).map(|_| rig.client("ask\n")).collect();
    rig.serve();
    asked.push(rig.client("ask\n"));
    rig.serve();
    std::thread::sleep(std::time::Duration::from_millis(300));
    // One request is with the engine, and waiting requests occupy all places.
    let more: Vec<UnixStream> = (0..30).map(|n| rig.client(if n % 2 == 0 { "ask\n" } else { "" })).collect();
    for client in more {
        assert_eq!(rig.answer(client), BUSY);
    }
    for (number, client) in asked.into_iter().enumerate() {
        engine.send(number.to_string().as_bytes()).unwrap();
        assert_eq!(rig.answer(client), number.to_string());
    }
}

#[test]
fn a_request_that_waits_for_its_turn_is_not_forgotten() {
    let mut rig = Rig::new("ctl-turn");
    let _engine = rig.control.connect(&mut rig.operator).unwrap().unwrap();
    let [_first, second, _silent] = ["ask\n", "ask\n", "sh"].map(|says| rig.client(says));
    rig.serve();
    let left = |rig: &mut Rig, seconds| {
        rig.control.clients.work(clock::now() + Duration::from_secs(seconds), || b"too late".to_vec());
        rig.control.clients.len()
    };
    // The first request is with the engine.
    assert_eq!((left(&mut rig, 4), left(&mut rig, 6), left(&mut rig, 24), left(&mut rig, 26)), (2, 1, 1, 0));
    assert_eq!(rig.answer(second), "too late");
}

#[test]
fn a_panic_over_a_request_ends_the_request_alone() {
    let mut rig = Rig::new("ctl-panic");
    let client = rig.client("panic\n");
    assert_eq!(rig.answer(client), PANICKED);
    let client = rig.client("x\n");
    assert_eq!(rig.answer(client), "you said x");
}

#[test]
fn an_instance_that_is_stuck_is_not_waited_for_longer_than_said() {
    let rig = Rig::new("ctl-stuck");
    let answer = ask::within(std::time::Duration::from_millis(50), &rig.temporary.0, None, "show");
    let error = answer.unwrap_err();
    assert_eq!(error.to_string(), "the gateway on 5 has given no answer for 50ms");
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
    // The engine ends.
    let three = rig.client("ask\n");
    rig.serve();
    drop(engine);
    assert_eq!(rig.answer(three), "gone: true");
}

#[test]
fn the_file_is_roots_replaced_and_removed() {
    let rig = Rig::new("ctl-file");
    let path = rig.temporary.open().socket("5");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut first = rig.control;
    // After kill -9 the file stays, too.
    first.leave_to_parent();
    assert!(path.exists() && UnixStream::connect(&path).is_err());
    let second = Listener::open(rig.temporary.open(), "5").unwrap();
    assert!(UnixStream::connect(&path).is_ok());
    drop(second);
    assert!(!path.exists());
}

#[test]
fn a_request_that_is_too_long_is_refused_before_it_is_sent() {
    let error = ask("/nowhere".as_ref(), None, &"a".repeat(65_536)).unwrap_err();
    assert_eq!(error.to_string(), "this request has 65536 bytes, and 65536 are the most: make several");
}
