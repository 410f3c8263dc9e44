//! PDF of a chart: one page as large as the chart, with vectors and text in Helvetica.
//!
//! Helvetica is one of the fonts that every reader has, so no font file is needed here. It is not embedded.

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write;

/// Heights of text are given with the space between lines, as for the SVG.
const LINE_HEIGHT: f64 = 1.24;

/// Widths of Helvetica's characters from space to tilde, in thousandths of the height of the font (Adobe's
/// font metrics).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Page under construction.
pub(super) struct Pdf<'a> {
    out: &'a mut Vec<u8>,
    size: (u32, u32),
    /// Points of the page for each pixel.
    scale: f64,
    content: String,
    /// Opacities in percent that the content uses.
    opacities: BTreeSet<u8>,
    written: bool,
}

impl<'a> Pdf<'a> {
    /// Begins a page of so many pixels, which is `width` points wide. The document is appended to `out`.
    pub fn new(out: &'a mut Vec<u8>, size: (u32, u32), width: f64) -> Pdf<'a> {
        let scale = width / f64::from(size.0.max(1));
        let content = format!("{scale:.5} 0 0 {scale:.5} 0 0 cm\n1 J 1 j\n");
        Pdf { out, size, scale, content, opacities: BTreeSet::new(), written: false }
    }

    /// Returns a place from the bottom of the page.
    fn at(&self, (x, y): BackendCoord) -> String {
        format!("{x} {}", self.size.1 as i32 - y)
    }

    fn colour(&mut self, colour: BackendColor) {
        let (r, g, b) = colour.rgb;
        let [r, g, b] = [r, g, b].map(|part| f64::from(part) / 255.0);
        let percent = (colour.alpha * 100.0).round().clamp(0.0, 100.0) as u8;
        self.opacities.insert(percent);
        let _ = writeln!(self.content, "/o{percent} gs {r:.3} {g:.3} {b:.3} rg {r:.3} {g:.3} {b:.3} RG");
    }

    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>, end: &str) {
        for (i, point) in points.into_iter().enumerate() {
            let _ = writeln!(self.content, "{} {}", self.at(point), if i == 0 { "m" } else { "l" });
        }
        let _ = writeln!(self.content, "{end}");
    }

    fn stroke<S: BackendStyle>(
        &mut self,
        points: impl IntoIterator<Item = BackendCoord>,
        style: &S,
        end: &str,
    ) {
        self.colour(style.color());
        let _ = writeln!(self.content, "{} w", style.stroke_width());
        self.path(points, end);
    }

    /// Writes the document: its objects, and the table of their places.
    fn document(&mut self) {
        let [width, height] = [self.size.0, self.size.1].map(|pixels| f64::from(pixels) * self.scale);
        let states = self.opacities.iter().map(|percent| {
            let share = f64::from(*percent) / 100.0;
            format!("/o{percent} << /ca {share} /CA {share} >> ")
        });
        let states = states.collect::<String>();
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_string(),
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.2} {height:.2}] /Contents 4 0 R \
                 /Resources << /Font << /F 5 0 R >> /ExtGState << {states}>> >> >>"
            ),
            format!("<< /Length {} >>\nstream\n{}endstream", self.content.len(), self.content),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_string(),
        ];
        let begin = self.out.len();
        self.out.extend_from_slice(b"%PDF-1.4\n");
        let mut places = Vec::new();
        for (object, n) in objects.iter().zip(1..) {
            places.push(self.out.len() - begin);
            self.out.extend_from_slice(format!("{n} 0 obj\n{object}\nendobj\n").as_bytes());
        }
        let table = self.out.len() - begin;
        let rows = places.iter().map(|place| format!("{place:010} 00000 n \n"));
        let end = format!(
            "xref\n0 {count}\n0000000000 65535 f \n{}trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{table}\n\
             %%EOF\n",
            rows.collect::<String>(),
            count = objects.len() + 1
        );
        self.out.extend_from_slice(end.as_bytes());
    }
}

/// Returns the code of a character in the font's encoding (Latin-1, as far as it is used here).
fn code(c: char) -> u8 {
    u8::try_from(c).unwrap_or(b'?')
}

/// Returns the width of text, in heights of the font.
fn width(text: &str) -> f64 {
    let of = |c: char| {
        let place = (code(c) as usize).checked_sub(32);
        place.and_then(|place| WIDTHS.get(place)).copied().unwrap_or(556)
    };
    f64::from(text.chars().map(|c| u32::from(of(c))).sum::<u32>()) / 1000.0
}

/// Returns text as a string of PDF, in hexadecimal.
fn string(text: &str) -> String {
    let digits = text.chars().map(|c| format!("{:02x}", code(c)));
    format!("<{}>", digits.collect::<String>())
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Pdf<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        if !std::mem::replace(&mut self.written, true) {
            self.document();
        }
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Drawn {
        self.colour(colour);
        let _ = writeln!(self.content, "{} 1 1 re f", self.at((x, y + 1)));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        if style.color().alpha > 0.0 {
            self.stroke(corners, style, if fill { "f" } else { "s" });
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 {
            self.stroke(path, style, "S");
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        if style.color().alpha <= 0.0 {
            return Ok(());
        }
        if fill {
            // A point drawn with a round pen.
            self.colour(style.color());
            let _ = writeln!(self.content, "{} w", 2 * radius);
            self.path([centre, centre], "S");
            return Ok(());
        }
        let around = (0..24).map(|n| f64::from(n) * std::f64::consts::TAU / 24.0).map(|angle| {
            let (sin, cos) = angle.sin_cos();
            let along = |part: f64| (f64::from(radius) * part).round() as i32;
            (centre.0 + along(cos), centre.1 + along(sin))
        });
        self.stroke(around.collect::<Vec<_>>(), style, "s");
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 {
            self.colour(style.color());
            self.path(corners, "f");
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, (x, y): BackendCoord) -> Drawn {
        if style.color().alpha <= 0.0 {
            return Ok(());
        }
        let height = style.size() / LINE_HEIGHT;
        let aside = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width(text) * height / 2.0,
            HPos::Right => -width(text) * height,
        };
        let down = match style.anchor().v_pos {
            VPos::Top => 0.76 * height,
            VPos::Center => 0.26 * height,
            VPos::Bottom => -0.26 * height,
        };
        // Directions of the text and of its upper side, upwards being positive.
        let (cos, sin) = match style.transform() {
            FontTransform::None => (1.0, 0.0),
            FontTransform::Rotate90 => (0.0, -1.0),
            FontTransform::Rotate180 => (-1.0, 0.0),
            FontTransform::Rotate270 => (0.0, 1.0),
        };
        let (x, y) = (f64::from(x), f64::from(self.size.1 as i32 - y));
        let (x, y) = (x + aside * cos + down * sin, y + aside * sin - down * cos);
        self.colour(style.color());
        let text = string(text);
        let _ = writeln!(
            self.content,
            "BT /F {height:.2} Tf {cos} {sin} {} {cos} {x:.2} {y:.2} Tm {text} Tj ET",
            -sin
        );
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok(((width(text) * style.size() / LINE_HEIGHT).ceil() as u32, style.size().ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        // By Adobe's metrics: T 611, C 722, P 667; a digit 556; a character outside the table counts as one.
        assert_eq!([width("TCP"), width("10"), width("µ"), width("")], [2.0, 1.112, 0.556, 0.0]);
    }

    #[test]
    fn text_is_latin() {
        assert_eq!(string("A(µ)→"), "<4128b5293f>");
    }

    #[test]
    fn every_object_is_where_the_table_says() {
        let mut out = b"before".to_vec();
        let mut page = Pdf::new(&mut out, (420, 300), 252.0);
        page.draw_line((0, 0), (10, 10), &BackendColor { alpha: 0.5, rgb: (0, 0, 0) })
            .expect("it cannot fail");
        page.present().expect("it cannot fail");
        page.present().expect("it is written once");
        let text = String::from_utf8(out[6..].to_vec()).expect("it is ASCII");
        assert!(
            text.contains("/MediaBox [0 0 252.00 180.00]") && text.contains("/o50 << /ca 0.5 /CA 0.5 >>")
        );
        let table = text.rsplit_once("startxref\n").expect("it has a table").1;
        let table: usize = table.lines().next().expect("a number").parse().expect("a number");
        let rows = text[table..].lines().skip(3).take(5);
        for (row, n) in rows.zip(1..) {
            let place: usize = row[..10].parse().expect("ten digits");
            assert!(text[place..].starts_with(&format!("{n} 0 obj\n")), "{row}");
        }
        let stream = text.split_once("stream\n").expect("it has a stream").1;
        let length = stream.find("endstream").expect("it ends");
        assert!(text.contains(&format!("<< /Length {length} >>")));
        assert_eq!(text.matches("%PDF").count(), 1);
    }
}
