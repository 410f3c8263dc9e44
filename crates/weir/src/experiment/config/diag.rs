//! Errors in configuration files: the place, the value found, and the accepted values.

use super::encoding;
pub use crate::result::running::Located;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// File being read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Name as the user gave it.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

impl Source {
    /// Creates a source from a text and its name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// Reads a file. Errors name the file and the system's reason, or say that it is larger than a GiB: a
    /// device has no end.
    pub fn read(path: &Path) -> Result<Source, String> {
        let (name, bytes) = at_most(path, LARGEST)?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            format!("{name}:{line}: not a text file in UTF-8")
        })?;
        Ok(Source { name, text })
    }

    /// Creates the source of a list or a trace written by other programs: in UTF-8, UTF-16 or Latin-1, with
    /// or without a byte order mark, with lines that end in LF, CR LF or CR.
    pub fn of_list(name: impl Into<String>, bytes: &[u8]) -> Source {
        Source::new(name, encoding::decode(bytes))
    }

    /// Reads a list or a trace as [`Source::of_list`] does. Errors are those of [`Source::read`].
    pub fn read_list(path: &Path) -> Result<Source, String> {
        let (name, bytes) = at_most(path, LARGEST)?;
        Ok(Source::of_list(name, &bytes))
    }

    /// Returns line and column of a byte offset, both from 1; columns count characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary_compat(offset)];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// Reads a file of at most this many bytes. Returns its name, too.
fn at_most(path: &Path, most: u64) -> Result<(String, Vec<u8>), String> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)) {
        Err(e) => Err(format!("{name}: {e}")),
        Ok(_) if bytes.len() as u64 > most => Err(format!("{name}: larger than {} MiB", most >> 20)),
        Ok(_) => Ok((name, bytes)),
    }
}

/// Text for a terminal: hidden characters but tabs are escaped. Names in lists come from other programs, and
/// from customers.
pub struct Shown<'a>(pub &'a str);

/// Returns whether a character moves the cursor, ends a line, turns the direction or has no width.
pub fn is_hidden(c: char) -> bool {
    let ranges = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    c.is_control() || matches!(c, '\u{61c}' | '\u{feff}') || ranges.iter().any(|range| range.contains(&c))
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\t' => f.write_char(c),
            c if is_hidden(c) => write!(f, "{}", c.escape_unicode()),
            c => f.write_char(c),
        })
    }
}

/// Returns a text of several lines for a terminal.
pub fn shown_lines(text: &str) -> String {
    text.split('\n').map(|line| Shown(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// Substitute for `str::floor_char_boundary`, which is newer than the oldest supported compiler.
trait FloorCharBoundary {
    fn floor_char_boundary_compat(&self, offset: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_compat(&self, offset: usize) -> usize {
        (0..=offset.min(self.len())).rev().find(|&i| self.is_char_boundary(i)).unwrap_or(0)
    }
}

/// Fault of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Value found, and the reason to refuse it.
    pub message: String,
    /// Accepted values.
    pub help: Option<String>,
}

impl Fault {
    /// Creates a fault with help.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: Some(help.into()) }
    }
    /// Creates a fault without help.
    pub fn bare(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.help {
            Some(help) => write!(f, "{}: {help}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Fault {}

/// Fault with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Place of the fault, in bytes of the file.
    pub span: Range<usize>,
    /// Fault, with the value found.
    pub message: String,
    /// Accepted values, or the key that was probably meant.
    pub help: Option<String>,
}

/// All faults of a file, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    source: Source,
    list: Vec<Diagnostic>,
}

impl Errors {
    /// Creates the errors of a file. Panics if there are none.
    pub fn new(source: &Source, mut list: Vec<Diagnostic>) -> Errors {
        assert!(!list.is_empty(), "errors without an error");
        list.sort_by_key(|d| (d.span.start, d.span.end));
        list.dedup();
        Errors { source: source.clone(), list }
    }

    /// Creates one error about a whole text.
    pub fn of(source: &Source, fault: Fault) -> Errors {
        Errors::at(source, 0..0, fault)
    }

    /// Creates one error about a place in a text, in bytes.
    pub fn at(source: &Source, span: Range<usize>, fault: Fault) -> Errors {
        Errors::new(source, vec![Diagnostic { span, message: fault.message, help: fault.help }])
    }

    /// Attributes the first error to all of another text.
    pub fn about(mut self, source: &Source) -> Errors {
        self.list.truncate(1);
        self.list[0].span = 0..source.text.len();
        Errors { source: source.clone(), list: self.list }
    }

    /// Returns whether they are about this text.
    pub(super) fn are_of(&self, source: &Source) -> bool {
        self.source == *source
    }

    /// Returns the errors.
    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }

    /// Returns the errors with their places in the text.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns the errors as data.
    pub fn located(&self) -> Vec<Located> {
        located(&self.source, &self.list)
    }
}

/// Returns diagnostics as data, in the order of the file. It scans the text once.
pub(super) fn located(source: &Source, list: &[Diagnostic]) -> Vec<Located> {
    let (mut from, mut line, mut column) = (0, 1, 1);
    let one = |d: &Diagnostic| {
        let until = source.text.floor_char_boundary_compat(d.span.start);
        let passed = &source.text[from..until];
        from = until;
        line += passed.matches('\n').count();
        let before = if passed.contains('\n') { 1 } else { column };
        column = before + passed.rsplit('\n').next().map_or(0, |rest| rest.chars().count());
        let (message, help) = (d.message.clone(), d.help.clone());
        Located { file: source.name.clone(), line, column, message, help }
    };
    list.iter().map(one).collect()
}

impl fmt::Display for Located {
    /// Writes `FILE:LINE:COLUMN: message: help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Located { file, line, column, message, help } = self;
        write!(f, "{file}:{line}:{column}: {}", Shown(message))?;
        help.as_ref().map_or(Ok(()), |help| write!(f, ": {}", Shown(help)))
    }
}

impl fmt::Display for Errors {
    /// Writes for each error `FILE:LINE:COLUMN: message`, the line with a caret below the fault, and help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.list.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            let (line, column) = self.source.position(d.span.start);
            writeln!(f, "{}:{line}:{column}: {}", self.source.name, Shown(&d.message))?;
            let text = self.source.text.lines().nth(line - 1).unwrap_or("");
            let width = line.to_string().len();
            let (before, rest) = excerpt(text, column - 1);
            writeln!(f, " {line} | {}", Shown(format!("{before}{rest}").trim_end()))?;
            // A tab stays a tab. So the caret stands below its character in any terminal.
            let pad: String = Shown(&before).to_string().replace(|c| c != '\t', " ");
            let length = self.source.text.get(d.span.clone()).map_or(0, |found| found.chars().count());
            let found: String = rest.chars().take(length).collect();
            let marked = Shown(&found).to_string().chars().count().max(1);
            write!(f, " {:width$} | {pad}{}", "", "^".repeat(marked))?;
            if let Some(help) = &d.help {
                write!(f, "\n {:width$} = {}", "", Shown(help))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// Most characters of a line that an error shows, and most of them before the fault. A file may be one line.
const EXCERPT: usize = 200;
const BEFORE: usize = 80;

/// Returns the parts of a line before and from a character on, cut where the line is long.
fn excerpt(line: &str, at: usize) -> (String, String) {
    let characters = line.chars().count();
    if characters <= EXCERPT {
        return (line.chars().take(at).collect(), line.chars().skip(at).collect());
    }
    let (cut, until) = (at.saturating_sub(BEFORE), at + EXCERPT - BEFORE);
    let dots = |is_cut: bool| is_cut.then_some('…').into_iter();
    let before = dots(cut > 0).chain(line.chars().take(at).skip(cut));
    let rest = line.chars().take(until).skip(at).chain(dots(until < characters));
    (before.collect(), rest.collect())
}

/// Returns the name among `known` that `found` was probably meant to be.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let lower = plain(found);
    let (count, letters) = (|name: &str| name.chars().count(), found.chars().count());
    known
        .into_iter()
        .filter_map(|k| {
            let name = plain(k);
            // A third of the letters may be wrong, and always one letter. Distance is at least the difference
            // of lengths.
            let most = (letters.max(count(k)) / 3).max(1);
            let distance = (count(&name).abs_diff(count(&lower)) <= most)
                .then(|| strsim::damerau_levenshtein(&lower, &name))
                .filter(|distance| *distance <= most)?;
            Some((distance, k))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// Most names that are suggested.
const MOST_NEAR: usize = 5;

/// Returns the names among `known` that `found` was probably meant to be, or that contain it, the nearest
/// first.
pub fn near<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = found.to_lowercase().replace('_', " ");
    let length = lower.chars().count();
    let mut all: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|k| !k.is_empty() && length > 0)
        .filter_map(|k| {
            let name = k.to_lowercase().replace('_', " ");
            let letters = name.chars().count();
            // As for the nearest name. Distance is at least the difference of lengths.
            let most = (length.max(letters) / 3).max(1);
            let distance = (letters.abs_diff(length) <= most)
                .then(|| strsim::damerau_levenshtein(&lower, &name))
                .filter(|distance| *distance <= most);
            let contains = length > 2 && name.contains(&lower);
            distance.or(contains.then_some(letters)).map(|distance| (distance, k))
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().take(MOST_NEAR).map(|(_, name)| name).collect()
}

/// Formats names as `a`, `b` and `c`, each in backquotes and as terminals show it.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("`{}`", Shown(n))).collect();
    match names.as_slice() {
        [] => "nothing".to_string(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        assert_eq!(at_most(Path::new("/dev/zero"), 2 << 20).unwrap_err(), "/dev/zero: larger than 2 MiB");
        assert_eq!(at_most(Path::new("/dev/null"), 2 << 20).unwrap(), ("/dev/null".into(), vec![]));
    }

    /// A list of thousands of sites may be one line.
    #[test]
    fn a_long_line_is_cut_around_its_fault() {
        let text = format!("{}\n{}bad{}", "é".repeat(10), "a".repeat(1_000), "b".repeat(1_000));
        let start = 21 + 1_000;
        let source = Source::new("f", text);
        let errors = Errors::at(&source, start..start + 3, Fault::bare("no"));
        let said = errors.to_string();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "f:2:1001: no");
        assert_eq!(lines[1], format!(" 2 | …{}bad{}…", "a".repeat(80), "b".repeat(117)));
        assert_eq!(lines[2], format!("   | {}^^^", " ".repeat(81)));
        let whole = Errors::at(&source, 0..21, Fault::bare("no")).to_string();
        assert!(whole.contains(&format!(" 1 | {}\n   | {}", "é".repeat(10), "^".repeat(10))), "{whole}");
    }

    #[test]
    fn places_are_counted_from_one_fault_to_the_next() {
        let source = Source::new("f", "aé,b,c\n\nü,d");
        let at = |start: usize| Diagnostic { span: start..start, message: String::new(), help: None };
        let places = |list: &[usize]| -> Vec<(usize, usize)> {
            let list: Vec<Diagnostic> = list.iter().map(|start| at(*start)).collect();
            located(&source, &list).iter().map(|l| (l.line, l.column)).collect()
        };
        // `é` and `ü` are two bytes each.
        assert_eq!(places(&[0, 4, 4, 6, 9, 12]), [(1, 1), (1, 4), (1, 4), (1, 6), (3, 1), (3, 3)]);
        assert_eq!(places(&[12]), [(3, 3)]);
    }

    #[test]
    fn hidden_characters_are_told_and_lines_stay() {
        assert_eq!(listed(["a\u{1b}[2J", "\u{202e}b"]), "`a\\u{1b}[2J` and `\\u{202e}b`");
        assert_eq!(shown_lines("a\u{7}\nb\u{2066}\u{61c}"), "a\\u{7}\nb\\u{2066}\\u{61c}");
    }

    #[test]
    fn the_first_byte_that_is_no_text_has_its_line() {
        let path = std::env::temp_dir().join(format!("weir-latin-{}", std::process::id()));
        std::fs::write(&path, b"name = 'x'\n# M\xfcller\n").unwrap();
        let said = Source::read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(said, format!("{}:2: not a text file in UTF-8", path.display()));
    }
}
