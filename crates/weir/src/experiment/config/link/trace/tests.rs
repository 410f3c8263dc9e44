//! Tests of traces in files.

use super::*;

/// Returns the trace of a file with this text.
fn read<T>(text: &str, parse: fn(&DeValue, Option<&Path>) -> Result<T, Fault>) -> Result<T, String> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("weir-trace-{}-{number}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("t"), text).unwrap();
    let found = parse(&DeValue::String("t".into()), Some(&directory));
    std::fs::remove_dir_all(&directory).unwrap();
    found.map_err(|fault| fault.message.replace(&directory.display().to_string(), "D"))
}

#[test]
fn losses_as_zeros_and_ones_and_as_numbers() {
    let trace = read("# of a modem\n0 0,1\n\n10 # two\n", losses).unwrap();
    assert_eq!((trace.lost, trace.period.map(NonZeroU64::get)), (&[2, 3][..], Some(5)));
    assert_eq!(read("0 1\n012\n", losses), Err("D/t:2: `2` is neither 0 nor 1".into()));
    assert_eq!(read("# nothing\n", losses), Err("D/t: nothing is in it".into()));
    let trace = read("2, 4-6\n9 # and one more\n", frames).unwrap();
    assert_eq!((trace.lost, trace.period), (&[1, 3, 4, 5, 8][..], None));
    for (text, says) in [
        ("1\n0", "D/t:2: `0` is no number of a frame"),
        ("7-3", "D/t:1: `7-3` is no number of a frame"),
        ("x", "D/t:1: `x` is no number of a frame"),
        ("+7", "D/t:1: `+7` is no number of a frame"),
        ("4-6\n\n6", "D/t:3: 6 does not come after 6"),
        ("1-99999999999", "D/t:1: more than 100000000 frames are lost"),
        ("", "D/t: nothing is in it"),
    ] {
        assert_eq!(read(text, frames), Err(says.into()), "{text:?}");
    }
}

#[test]
fn a_trace_of_mahimahi() {
    let trace = read("1\n1\n4\n", deliveries).unwrap();
    let RateTrace::Opportunities(o) = trace else { panic!("{trace:?}") };
    assert_eq!(o.at_ms, [1, 1, 4]);
    for (text, says) in [
        ("1\n2.5\n", "D/t:2: `2.5` is no time in milliseconds"),
        ("1\n+2\n", "D/t:2: `+2` is no time in milliseconds"),
        ("3\n2\n", "D/t:2: 2 is before 3"),
        ("0\n0\n", "D/t:2: the trace lasts no time"),
        ("", "D/t: nothing is in it"),
    ] {
        assert_eq!(read(text, deliveries).unwrap_err(), says, "{text:?}");
    }
}

#[test]
fn times_and_rates() {
    let trace = read("0s 10Mbit # good\n1.5s\t0\n 2s, 64kbit\n4s repeat\n", rates).unwrap();
    let RateTrace::Rates(r) = trace else { panic!("{trace:?}") };
    let ms = Duration::from_millis;
    assert_eq!(r.steps, [(ms(0), Some(Rate::mbit(10))), (ms(1500), None), (ms(2000), Some(Rate::kbit(64)))]);
    assert_eq!(r.period, Some(ms(4000)));
    for (text, says) in [
        ("1s 10Mbit", "D/t:1: the first time is not 0s"),
        ("0s 10Mbit\n0s 9Mbit", "D/t:2: 0s is not after the time before it"),
        ("0s 10Mbit\n1s repeat\n2s 9Mbit", "D/t:3: there is more behind the end"),
        ("0s 10Mbit\n1s", "D/t:2: expected a time and a rate"),
        ("0s 10MB", "D/t:1: unknown unit `MB` in the rate \"10MB\""),
        ("0 10Mbit", "D/t:1: \"0\" is a duration without a unit"),
        ("0s 0\n1s repeat", "D/t: nothing is ever sent"),
        ("", "D/t: nothing is ever sent"),
    ] {
        assert_eq!(read(text, rates).unwrap_err(), says, "{text:?}");
    }
}

#[test]
fn a_trace_is_kept_once() {
    let value = DeValue::String("Cargo.toml".into());
    assert!(losses(&value, None).is_err());
    let path = std::env::temp_dir().join(format!("weir-trace-{}", std::process::id()));
    std::fs::write(&path, "010").unwrap();
    let value = DeValue::String(path.display().to_string().into());
    let (one, two) = (losses(&value, None).unwrap(), losses(&value, Some(Path::new("elsewhere"))).unwrap());
    assert!(core::ptr::eq(one.lost, two.lost));
    std::fs::write(&path, "011").unwrap();
    assert_eq!(losses(&value, None).unwrap().lost, [1, 2]);
    // Other programs begin with a mark, and write comments in Latin-1.
    std::fs::write(&path, b"\xef\xbb\xbf011 # \xfc\r\n").unwrap();
    assert_eq!(losses(&value, None).unwrap().lost, [1, 2]);
    std::fs::remove_file(&path).unwrap();
}
