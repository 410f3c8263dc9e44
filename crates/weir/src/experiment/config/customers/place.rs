//! The place of a list's field in its text.

use core::ops::Range;

/// Where field number `i` of the row is that begins at `start`, without the blanks around it.
pub(super) fn place(text: &str, start: usize, i: usize) -> Range<usize> {
    // A row may be counted from blank lines and comments on that are before it.
    let mut start = start;
    while let Some(line) = text[start..].lines().next() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        start += text[start..].find('\n').map_or(text.len() - start, |end| end + 1);
    }
    let (mut at, mut number, mut quoted) = (start, 0, false);
    for (offset, c) in text[start..].char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' | '\n' | '\r' if !quoted => {
                if number == i || c != ',' {
                    return trimmed(text, at..start + offset);
                }
                number += 1;
                at = start + offset + 1;
            }
            _ => {}
        }
    }
    trimmed(text, at..text.len())
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let field = &text[range.clone()];
    let start = range.start + (field.len() - field.trim_start().len());
    start..(start + field.trim().len())
}
