//! PDF of a chart: one page as large as the chart, with vectors and text in Helvetica.
//!
//! Helvetica is one of the fonts that every reader has, so no font file is needed here. It is not embedded.

use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::writers::ExtGraphicsState;
use pdf_writer::{Content, Finish, Name, Rect, Ref, Str};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};
use std::collections::BTreeSet;
use std::convert::Infallible;

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
    content: Content,
    /// Opacities in percent that the content uses.
    opacities: BTreeSet<u8>,
    written: bool,
}

impl<'a> Pdf<'a> {
    /// Begins a page of so many pixels, which is `width` points wide. The document is appended to `out`.
    pub fn new(out: &'a mut Vec<u8>, size: (u32, u32), width: f64) -> Pdf<'a> {
        let scale = width / f64::from(size.0.max(1));
        let mut content = Content::new();
        content.transform([scale as f32, 0.0, 0.0, scale as f32, 0.0, 0.0]);
        content.set_line_cap(LineCapStyle::RoundCap).set_line_join(LineJoinStyle::RoundJoin);
        Pdf { out, size, scale, content, opacities: BTreeSet::new(), written: false }
    }

    /// Returns a place from the bottom of the page.
    fn at(&self, (x, y): BackendCoord) -> (f32, f32) {
        (x as f32, (self.size.1 as i32 - y) as f32)
    }

    fn colour(&mut self, colour: BackendColor) {
        let (r, g, b) = colour.rgb;
        let [r, g, b] = [r, g, b].map(|part| f32::from(part) / 255.0);
        let percent = (colour.alpha * 100.0).round().clamp(0.0, 100.0) as u8;
        self.opacities.insert(percent);
        self.content.set_parameters(Name(opacity(percent).as_bytes()));
        self.content.set_fill_rgb(r, g, b).set_stroke_rgb(r, g, b);
    }

    fn path(&mut self, points: impl IntoIterator<Item = BackendCoord>) -> &mut Content {
        for (i, point) in points.into_iter().enumerate() {
            let (x, y) = self.at(point);
            if i == 0 {
                self.content.move_to(x, y);
            } else {
                self.content.line_to(x, y);
            }
        }
        &mut self.content
    }

    /// Begins a path of this style.
    fn line<S: BackendStyle>(
        &mut self,
        points: impl IntoIterator<Item = BackendCoord>,
        style: &S,
    ) -> &mut Content {
        self.colour(style.color());
        self.content.set_line_width(style.stroke_width() as f32);
        self.path(points)
    }

    /// Writes the document.
    fn document(&mut self) {
        let [catalog, pages, page, content, font] = [1, 2, 3, 4, 5].map(Ref::new);
        let mut pdf = pdf_writer::Pdf::new();
        pdf.set_version(1, 4);
        pdf.catalog(catalog).pages(pages);
        pdf.pages(pages).kids([page]).count(1);
        let points = |pixels: u32| (f64::from(pixels) * self.scale * 100.0).round() / 100.0;
        let [width, height] = [self.size.0, self.size.1].map(|pixels| points(pixels) as f32);
        let mut one = pdf.page(page);
        one.parent(pages).media_box(Rect::new(0.0, 0.0, width, height)).contents(content);
        let mut resources = one.resources();
        resources.fonts().pair(FONT, font);
        let mut states = resources.ext_g_states();
        for &percent in &self.opacities {
            let share = f32::from(percent) / 100.0;
            let mut state = states.insert(Name(opacity(percent).as_bytes())).start::<ExtGraphicsState<'_>>();
            state.non_stroking_alpha(share).stroking_alpha(share);
        }
        states.finish();
        resources.finish();
        one.finish();
        pdf.type1_font(font).base_font(Name(b"Helvetica")).encoding_predefined(Name(b"WinAnsiEncoding"));
        let drawn = std::mem::replace(&mut self.content, Content::new()).finish();
        pdf.stream(content, drawn.as_slice());
        self.out.extend(pdf.finish());
    }
}

/// Name of the font, and names of opacities, among the resources of the page.
const FONT: Name<'_> = Name(b"F");

fn opacity(percent: u8) -> String {
    format!("o{percent}")
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
        let (left, bottom) = self.at((x, y + 1));
        self.content.rect(left, bottom, 1.0, 1.0).fill_nonzero();
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
            let path = self.line(corners, style);
            if fill {
                path.fill_nonzero();
            } else {
                path.close_and_stroke();
            }
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 {
            self.line(path, style).stroke();
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
            self.content.set_line_width(2.0 * radius as f32);
            self.path([centre, centre]).stroke();
            return Ok(());
        }
        let around = (0..24).map(|n| f64::from(n) * std::f64::consts::TAU / 24.0).map(|angle| {
            let (sin, cos) = angle.sin_cos();
            let along = |part: f64| (f64::from(radius) * part).round() as i32;
            (centre.0 + along(cos), centre.1 + along(sin))
        });
        self.line(around, style).close_and_stroke();
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 {
            self.colour(style.color());
            self.path(corners).fill_nonzero();
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
        let bytes: Vec<u8> = text.chars().map(code).collect();
        self.content.begin_text().set_font(FONT, height as f32);
        self.content.set_text_matrix([cos, sin, -sin, cos, x, y].map(|part| part as f32));
        self.content.show(Str(&bytes)).end_text();
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
        assert_eq!("A(µ)→".chars().map(code).collect::<Vec<_>>(), b"A(\xb5)?");
    }

    #[test]
    fn a_page_is_written_once_and_as_large_as_its_chart() {
        let mut out = b"before".to_vec();
        let mut page = Pdf::new(&mut out, (420, 300), 252.0);
        page.draw_line((0, 0), (10, 10), &BackendColor { alpha: 0.5, rgb: (0, 0, 0) })
            .expect("it cannot fail");
        page.present().expect("it cannot fail");
        page.present().expect("it is written once");
        let text = String::from_utf8_lossy(&out[6..]).into_owned();
        assert!(text.starts_with("%PDF-1.4\n") && text.contains("/MediaBox [0 0 252 180]"), "{text}");
        assert!(text.contains("/o50 gs") && text.contains("/ca 0.5"), "{text}");
        assert_eq!(text.matches("%PDF").count(), 1);
    }
}
