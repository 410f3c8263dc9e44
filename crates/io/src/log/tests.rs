use super::*;
use rustix::fs::{mkfifoat, open, Mode, CWD};
use rustix::pipe::pipe;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Instant;

/// Runs `what`. Panics if it takes longer than a thousand lines may.
fn at_once(what: impl FnOnce()) {
    let began = Instant::now();
    what();
    assert!(began.elapsed() < std::time::Duration::from_secs(2));
}

/// Waits until the thread has dealt with what was written.
fn settled(log: &Log) {
    let read = |place| log.counters.atomic_u64(place).load(Relaxed);
    let until = Instant::now() + std::time::Duration::from_secs(10);
    while read(counter::DONE) < read(counter::WRITTEN) {
        assert!(Instant::now() < until);
        std::thread::sleep(LOOK);
    }
}

/// Lines that differ in more than digits, so that they are of different kinds.
fn line(n: usize) -> String {
    let letter = |n: usize| (b'a' + (n % 26) as u8) as char;
    format!("line {n} {}{}{} {}", letter(n), letter(n / 26), letter(n / 676), "x".repeat(200))
}

/// Lines that notices report as lost.
fn lost(text: &str) -> u64 {
    let told = text.lines().filter(|line| line.ends_with("lost: nothing took them"));
    told.map(|line| line.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap()).sum()
}

#[test]
fn lines_that_a_stuck_reader_does_not_take_are_dropped_and_counted() {
    let (from, to) = pipe().unwrap();
    let log = Log::new(to, None).unwrap();
    // 220 kB: both pipes together hold 128 KiB, and the thread as much as one of them.
    at_once(|| (0..1_000).for_each(|n| log.write(&line(n))));
    at_once(|| _ = log.drain());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        File::from(from).read_to_string(&mut text).unwrap();
        text
    });
    settled(&log);
    log.write("the last one");
    drop(log);
    let text = reader.join().unwrap();
    let written = text.lines().filter(|line| line.starts_with("line ")).count() as u64;
    assert!(written > 200 && lost(&text) > 0, "{written} lines");
    assert_eq!(written + lost(&text), 1_000);
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(last[0] == "the last one" && last[1].contains("lines of the log were lost"), "{last:?}");
}

#[test]
fn lines_without_a_reader_are_dropped_until_there_is_one_again() {
    let path = std::env::temp_dir().join(format!("weir-log-fifo-{}", std::process::id()));
    mkfifoat(CWD, &path, Mode::RWXU).unwrap();
    let reader = || File::from(open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
    let first = reader();
    let log = Log::new(open(&path, OFlags::WRONLY, Mode::empty()).unwrap(), None).unwrap();
    drop(first);
    at_once(|| (0..3).for_each(|n| log.write(&line(n))));
    settled(&log);
    let mut second = reader();
    log.write("2026-11-25T10:00:00.0Z  INFO fourth");
    settled(&log);
    let mut text = [0; 300];
    let count = second.read(&mut text).unwrap();
    let stamp = "2026-11-25T10:00:00.0Z ";
    let wanted =
        format!("{stamp} WARN 3 lines of the log were lost: nothing took them\n{stamp} INFO fourth\n");
    assert_eq!(std::str::from_utf8(&text[..count]).unwrap(), wanted);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_full_device_is_no_reason_to_wait() {
    let log = Log::new(open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap(), None).unwrap();
    at_once(|| (0..1_000).for_each(|n| log.write(&line(n))));
    at_once(|| settled(&log));
}

/// Both ends of a terminal: the one that shows it, and the one that programs write to.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut shows, mut takes) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: the first two are valid for writes, the others are not asked for.
    assert_eq!(unsafe { libc::openpty(&mut shows, &mut takes, null, null.cast(), null.cast()) }, 0);
    // SAFETY: both are new descriptors without an owner.
    unsafe { (OwnedFd::from_raw_fd(shows), OwnedFd::from_raw_fd(takes)) }
}

#[test]
fn a_terminal_may_be_stopped_and_closed() {
    let (shows, takes) = terminal();
    let log = Log::new(takes.try_clone().unwrap(), None).unwrap();
    // SAFETY: the descriptor is a terminal's. The actions are those of ctrl-S and ctrl-Q.
    let flow = |action| assert_eq!(unsafe { libc::tcflow(takes.as_raw_fd(), action) }, 0);
    flow(libc::TCOOFF);
    at_once(|| (0..1_000).for_each(|n| log.write(&line(n))));
    at_once(|| _ = log.drain());
    flow(libc::TCOON);
    let mut text = [0; 4096];
    let count = rustix::io::read(&shows, &mut text).unwrap();
    assert!(count > 0 && text.starts_with(b"line 0"));
    drop(shows);
    at_once(|| settled(&log));
    at_once(|| (0..1_000).for_each(|n| log.write(&line(n))));
    at_once(|| settled(&log));
}

#[test]
fn an_entry_of_the_journal_has_a_field_for_each_value() {
    let path = std::env::temp_dir().join(format!("weir-journal-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let journal = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    journal.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let (from, to) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let log = Log::new(to, Some(Journal::at(path.to_str().unwrap()).unwrap())).unwrap();
    log.write(r#"{"time":"2026-11-25T10:00:00Z","level":"WARN","message":"the engine = away","dev":"wan0"}"#);
    let mut entry = [0; 4096];
    let len = journal.recv(&mut entry).unwrap();
    let expected = "MESSAGE=the engine = away\nPRIORITY=4\nSYSLOG_IDENTIFIER=weir\nWEIR_DEV=wan0\n";
    assert_eq!(std::str::from_utf8(&entry[..len]).unwrap(), expected);
    // The journal is away: entries are lines on standard error.
    drop(journal);
    std::fs::remove_file(&path).unwrap();
    let text = r#"{"time":"2026-11-25T10:00:01Z","level":"INFO","message":"on"}"#;
    log.write(text);
    let mut line = String::new();
    BufReader::new(File::from(from)).read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), text);
}
