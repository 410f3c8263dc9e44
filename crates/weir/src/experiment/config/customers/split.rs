//! Places of a row's fields in the text, by the grammar of RFC 4180 with blanks around fields. The CSV reader
//! accepts more than that grammar: a quote behind a blank, text behind a quote, a quote that is never closed.
//! Each of these moves fields or swallows rows, so it is an error here.

use crate::experiment::config::diag::Fault;
use core::ops::Range;

/// Places of fields, without the blanks around them. They end at the fault, if there is one.
pub(super) struct Split {
    pub places: Vec<Range<usize>>,
    pub fault: Option<(Range<usize>, Fault)>,
}

/// Splits the row that begins at `start`. Blank lines and comments before the row are skipped.
pub(super) fn split(text: &str, start: usize) -> Split {
    let mut at = begin(text, start);
    let mut places = Vec::new();
    loop {
        let end = match field(text, at) {
            Ok(end) => end,
            Err(fault) => return Split { places, fault: Some(fault) },
        };
        places.push(trimmed(text, at..end));
        if !text[end..].starts_with(',') {
            return Split { places, fault: None };
        }
        at = end + 1;
    }
}

/// Skips empty lines and comments.
fn begin(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        at += match rest.bytes().next() {
            Some(b'\n' | b'\r') => 1,
            Some(b'#') => rest.find('\n').unwrap_or(rest.len()),
            _ => return at,
        };
    }
}

/// Returns the end of the field that begins here.
fn field(text: &str, at: usize) -> Result<usize, (Range<usize>, Fault)> {
    let quote = behind_blanks(text, at);
    if !text[quote..].starts_with('"') {
        return Ok(text[at..].find([',', '\n', '\r']).map_or(text.len(), |end| at + end));
    }
    if quote > at {
        let help = "a field in quotes begins with its quote: remove the blank before it";
        return Err((quote..quote + 1, Fault::new("a quote behind a blank", help)));
    }
    let Some(close) = closing(text, quote + 1) else {
        let help = "what follows, to the end of the file, would be in this field";
        return Err((quote..quote + 1, Fault::new("a quote that is never closed", help)));
    };
    let end = behind_blanks(text, close + 1);
    match text[end..].chars().next() {
        None | Some(',' | '\n' | '\r') => Ok(end),
        Some(found) => {
            let message = format!("\"{found}\" behind a closing quote");
            let help = "a field ends with its quote; a quote within it is written twice";
            Err((end..end + found.len_utf8(), Fault::new(message, help)))
        }
    }
}

/// Returns the place of the closing quote. Two quotes in a row are one quote within the field.
fn closing(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let quote = at + text[at..].find('"')?;
        if !text[quote + 1..].starts_with('"') {
            return Some(quote);
        }
        at = quote + 2;
    }
}

fn behind_blanks(text: &str, at: usize) -> usize {
    let is_blank = |c: &char| c.is_whitespace() && !matches!(c, '\n' | '\r');
    at + text[at..].chars().take_while(is_blank).map(char::len_utf8).sum::<usize>()
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let field = &text[range.clone()];
    let start = range.start + (field.len() - field.trim_start().len());
    start..(start + field.trim().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Result<Vec<&str>, (usize, String)> {
        let split = split(text, 0);
        match split.fault {
            Some((at, fault)) => Err((at.start, fault.message)),
            None => Ok(split.places.into_iter().map(|place| &text[place]).collect()),
        }
    }

    #[test]
    fn rows_are_split_as_rfc_4180_says() {
        assert_eq!(fields("a, b ,\"c, d\" ,\n1").unwrap(), ["a", "b", "\"c, d\"", ""]);
        assert_eq!(fields("\r\n# x, \"y\n\"a \"\"b\"\"\nc\",d\r\n").unwrap(), ["\"a \"\"b\"\"\nc\"", "d"]);
        assert_eq!(
            fields("12\" pipe,\"\"").unwrap(),
            ["12\" pipe", "\"\""],
            "no field begins with the first quote"
        );
        assert_eq!(fields("7, \"a, b\",c"), Err((3, "a quote behind a blank".into())));
        assert_eq!(fields("7,\"a, b,c\n8,d"), Err((2, "a quote that is never closed".into())));
        assert_eq!(fields("7,\"a\" b,c"), Err((6, "\"b\" behind a closing quote".into())));
    }
}
