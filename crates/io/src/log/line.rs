//! Lines: one for each event, without control characters, short enough for an atomic write.

/// Longest event in bytes. With a notice it stays below the 4,096 bytes that a pipe takes whole.
const LONGEST: usize = 2_000;

/// Bytes of the beginning of an event that is too long; the rest of the line is its end, where the kernel's
/// verifier says what is wrong.
const BEGINNING: usize = 600;

/// Formats an event as one line with its end. The middle of a long one is left out.
pub fn one(text: &str) -> String {
    let text = text.trim_end_matches('\n');
    let mut line = shown(text, usize::MAX);
    if line.len() > LONGEST {
        let room = LONGEST - BEGINNING - '…'.len_utf8();
        let (from, to) = (floor(&line, BEGINNING), floor(&line, line.len() - room + 3));
        line.replace_range(from..to, "…");
    }
    line.push('\n');
    line
}

/// Returns the last boundary of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// Returns whether a character turns the direction of a text, ends a line or has no width.
fn turns(c: char) -> bool {
    let ranges = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    matches!(c, '\u{61c}' | '\u{feff}') || ranges.iter().any(|range| range.contains(&c))
}

/// Escapes the characters of a text that terminals do not show, and cuts it to `most` bytes with an ellipsis.
pub fn shown(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if shown.len() + '…'.len_utf8() > most.saturating_sub(c.escape_default().len()) {
            shown.push('…');
            break;
        }
        if c.is_control() || turns(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Beginning of a line of JSON, before its time.
const JSON: &str = "{\"time\":\"";

/// Splits a line into the time that it begins with and the rest.
pub fn parts(line: &str) -> (&str, &str) {
    if let Some((time, _)) = line.strip_prefix(JSON).and_then(|rest| rest.split_once('"')) {
        return (time, &line[JSON.len() + time.len()..]);
    }
    let end = line.find(' ').filter(|_| line.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(0);
    line.split_at(end)
}

/// Returns a warning with the time and in the form of a line.
pub fn notice(like: &str, words: &str) -> String {
    let time = parts(like).0;
    match like.starts_with(JSON) {
        true => format!("{JSON}{time}\",\"level\":\"WARN\",\"message\":\"{words}\"}}\n"),
        false => format!("{time}  WARN {words}\n"),
    }
}

/// Returns the line, behind a notice of dropped lines if there are any.
pub fn with_notice(line: &str, dropped: u64) -> String {
    if dropped == 0 {
        return line.to_owned();
    }
    let words = if dropped == 1 {
        "1 line of the log was".into()
    } else {
        format!("{dropped} lines of the log were")
    };
    notice(line, &format!("{words} lost: nothing took them")) + line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        assert_eq!(one("a\0b\x1b[31m\nc\u{9b}\n"), "a\\u{0}b\\u{1b}[31m\\nc\\u{9b}\n");
        assert_eq!(one("a\u{202e}b\u{2066}\u{2028}"), "a\\u{202e}b\\u{2066}\\u{2028}\n");
        assert_eq!(one("über"), "über\n");
        let long = one(&"ü".repeat(3_000));
        assert!(long.len() <= LONGEST + 1 && long.contains("ü…ü"), "{}", long.len());
        let ends = one(&format!("begins {} ends", "x".repeat(3_000)));
        assert!(ends.starts_with("begins x") && ends.ends_with("x ends\n"));
    }

    #[test]
    fn a_notice_has_the_time_of_the_line_after_it() {
        let line = "2026-11-25T10:00:00.000000Z  INFO ready\n";
        assert_eq!(with_notice(line, 0), line);
        let two =
            "2026-11-25T10:00:00.000000Z  WARN 7 lines of the log were lost: nothing took them\n".to_owned();
        assert_eq!(with_notice(line, 7), two + line);
        assert!(with_notice("weir: no\n", 1).starts_with("  WARN 1 line of the log was lost"));
        let json = "{\"time\":\"2026-11-25T10:00:00.000000Z\",\"level\":\"INFO\",\"message\":\"ready\"}\n";
        let both = with_notice(json, 2);
        let (first, second) = both.split_once('\n').unwrap();
        let first: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!(first["message"], "2 lines of the log were lost: nothing took them");
        assert_eq!((&first["time"], second), (&"2026-11-25T10:00:00.000000Z".into(), json));
    }
}
