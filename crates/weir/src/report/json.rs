//! JSON for people and programs: indented, but with arrays of numbers on one line. So a series is a line and
//! not a page.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Writes a value as indented JSON, with a newline at its end.
pub fn pretty(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Lines::default()))?;
    text.push(b'\n');
    Ok(text)
}

/// Formatter that begins arrays on the current line. The first values of an array decide whether it stays on
/// one line.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// Flag: the next value is an element of an array; the flag tells the first from further ones.
    element: bool,
    /// State of each open array or object: has it any content, and does it span several lines?
    open: Vec<(bool, bool)>,
}

impl Lines {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b"  "))
    }

    /// Begins a value that is no number: in an array it gets a line of its own.
    fn bulky<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.element) {
            self.break_line(out)?;
        }
        Ok(())
    }

    /// Begins a number: in an array it stays on the line if all before it did.
    fn slim<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let several = self.open.last().is_some_and(|o| o.1);
        match (std::mem::take(&mut self.element), several) {
            (true, true) => self.line(out),
            (true, false) if self.open.last().is_some_and(|o| o.0) => out.write_all(b" "),
            _ => Ok(()),
        }
    }

    fn break_line<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if let Some(open) = self.open.last_mut() {
            open.1 = true;
        }
        self.line(out)
    }

    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.bulky(out)?;
        self.open.push((false, false));
        self.depth += 1;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.open.pop().is_some_and(|o| o.1) {
            self.line(out)?;
        }
        out.write_all(bracket)
    }

    fn ended(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.0 = true;
        }
    }
}

/// Numbers are written as serde_json does.
macro_rules! numbers {
    ($($name:ident: $t:ty),*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, out: &mut W, value: $t) -> io::Result<()> {
            self.slim(out)?;
            serde_json::ser::CompactFormatter.$name(out, value)
        }
    )*};
}

impl Formatter for Lines {
    numbers!(write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128);
    numbers!(write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128);
    numbers!(write_f32: f32, write_f64: f64);

    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.slim(out)?;
        out.write_all(b"null")
    }
    fn write_bool<W: ?Sized + Write>(&mut self, out: &mut W, value: bool) -> io::Result<()> {
        self.slim(out)?;
        out.write_all(if value { b"true" } else { b"false" })
    }
    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.bulky(out)?;
        out.write_all(b"\"")
    }
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element = true;
        if first {
            Ok(())
        } else {
            out.write_all(b",")
        }
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.ended();
        Ok(())
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.break_line(out)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn text(value: &Value) -> String {
        String::from_utf8(pretty(value).unwrap()).unwrap()
    }

    #[test]
    fn numbers_stay_on_a_line() {
        let value =
            json!({"a": [1, -2.5, null], "b": [], "c": {}, "d": [{"x": [1]}, "y", 3], "e": [[1, 2], [3]]});
        let want = r#"{
  "a": [1, -2.5, null],
  "b": [],
  "c": {},
  "d": [
    {
      "x": [1]
    },
    "y",
    3
  ],
  "e": [
    [1, 2],
    [3]
  ]
}
"#;
        assert_eq!(text(&value), want);
    }

    #[test]
    fn it_is_the_same_value() {
        let value = json!({"s": "a \"quoted\"\nline", "n": [1.5e300, 0, 18446744073709551615u64, [true, [false]]], "o": {"": {"k": [[]]}}});
        assert_eq!(serde_json::from_str::<Value>(&text(&value)).unwrap(), value);
    }
}
