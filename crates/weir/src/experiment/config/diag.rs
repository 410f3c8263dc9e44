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

    /// Creates the source of a list or a trace written by other programs: in UTF-8, UTF-16 or Latin-1, with or
    /// without a byte order mark, with lines that end in LF, CR LF or CR.
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

/// Text for a terminal: characters that move the cursor, turn the direction or have no width are escaped.
/// Names in lists come from other programs, and from customers.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\t' => f.write_char(c),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                write!(f, "{}", c.escape_unicode())
            }
            c if c.is_control() => write!(f, "{}", c.escape_unicode()),
            c => f.write_char(c),
        })
    }
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
    let (mut from, mut line) = (0, 1);
    let one = |d: &Diagnostic| {
        let until = source.text.floor_char_boundary_compat(d.span.start);
        let newlines = source.text[from..until].matches('\n').count();
        (from, line) = (until, line + newlines);
        let begins = source.text[..until].rfind('\n').map_or(0, |i| i + 1);
        let column = source.text[begins..until].chars().count() + 1;
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
            writeln!(f, " {line} | {}", Shown(text.trim_end()))?;
            // A tab stays a tab. So the caret stands below its character in any terminal.
            let before: String = text.chars().take(column - 1).collect();
            let pad: String = Shown(&before).to_string().replace(|c| c != '\t', " ");
            let end = d.span.end.min(d.span.start + text.len().saturating_sub(before.len()));
            let found = self.source.text.get(d.span.start..end).unwrap_or("");
            let marked = Shown(found.lines().next().unwrap_or("")).to_string().chars().count().max(1);
            write!(f, " {:width$} | {pad}{}", "", "^".repeat(marked))?;
            if let Some(help) = &d.help {
                write!(f, "\n {:width$} = {}", "", Shown(help))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// Returns the name among `known` that `found` was probably meant to be.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase().replace('-', "_")), k))
        // A third of the letters may be wrong, and always one letter.
        .filter(|(d, k)| *d <= (found.chars().count().max(k.chars().count()) / 3).max(1))
        .min_by_key(|(d, _)| *d)
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

/// Formats names as `a`, `b` and `c`, each in backquotes.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
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

    #[test]
    fn the_first_byte_that_is_no_text_has_its_line() {
        let path = std::env::temp_dir().join(format!("weir-latin-{}", std::process::id()));
        std::fs::write(&path, b"name = 'x'\n# M\xfcller\n").unwrap();
        let said = Source::read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(said, format!("{}:2: not a text file in UTF-8", path.display()));
    }
}
