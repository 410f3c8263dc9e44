//! Drawing of panels one below the other with a common axis, which is time as a rule, as SVG or PDF. Both
//! name a font and need no font file here; widths of words are estimated.
//!
//! Colours differ in dashes and marks too, so that charts can be read in grey.

use super::data::{Point, Spread};
use super::pdf::Pdf;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Colours that all readers can tell apart, whatever their colour vision (Okabe, Ito 2008), without yellow
/// and black.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const INK: RGBColor = RGBColor(34, 34, 34);
const SOFT: RGBColor = RGBColor(95, 95, 95);
const GRID: RGBColor = RGBColor(228, 228, 228);

/// Width in pixels of a chart for screens.
const WIDTH: u32 = 640;
/// Width of a chart of named positions, of which the words can be read on a phone.
const NARROW: u32 = 540;
/// Room for the numbers at the axis and for its name.
const LEFT: u32 = 80;
const MARGIN: u32 = 16;
/// Room for the labels of marks.
const RIGHT: u32 = 96;
/// Width of a bar at a named position, of which each has a width of 1.
const BAR: f64 = 0.6;
/// Height of a line of words, or of a note.
const LINE: i32 = 22;
const NOTE: i32 = 18;
/// Heights of the title and of other words.
const TITLE: u32 = 18;
const WORDS: u32 = 15;
/// Width of a character of the small font, in pixels; sans-serif fonts are a little narrower on average.
const CHARACTER: i32 = 8;

/// Lengths of the lines and gaps of each colour, in pixels; the first is drawn through.
const DASHES: [&[i32]; 6] = [&[], &[9, 4], &[2, 4], &[9, 4, 2, 4], &[16, 4], &[5, 3, 2, 3, 2, 3]];

type Area<B> = DrawingArea<B, Shift>;
type Drawn<T> = Result<T, String>;

/// Size of a chart on its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// For a screen, in pixels.
    #[default]
    Screen,
    /// As wide as a column of a paper: 3.5 inches, with words of 7 points.
    Column,
    /// As wide as a page of a paper: 7.16 inches.
    Page,
}

impl Size {
    /// Width in pixels.
    const fn pixels(self) -> u32 {
        match self {
            Size::Screen => WIDTH,
            Size::Column => 420,
            Size::Page => 860,
        }
    }

    /// Width in points, of which an inch has 72.
    const fn points(self) -> f64 {
        match self {
            Size::Screen => WIDTH as f64 * 0.75,
            Size::Column => 252.0,
            Size::Page => 515.52,
        }
    }

    /// Height of a panel, of that on a screen.
    const fn height(self, pixels: u32) -> u32 {
        match self {
            Size::Screen => pixels,
            Size::Column => pixels * 7 / 10,
            Size::Page => pixels * 9 / 10,
        }
    }
}

/// A chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chart {
    /// Headline.
    pub title: String,
    /// Notes for the reader, line by line.
    pub notes: Vec<String>,
    /// Names of the colours, in order.
    pub legend: Vec<String>,
    /// Meaning of the dashed lines; empty for none.
    pub marks: String,
    /// Panels from the top down.
    pub panels: Vec<Panel>,
    /// Name and unit of the horizontal axis; empty for time in seconds.
    pub across: String,
    /// Beginning of the horizontal axis.
    pub from: f64,
    /// End of the horizontal axis.
    pub until: f64,
    /// Names of positions on the horizontal axis instead of numbers: the first is from 0 to 1.
    pub positions: Vec<String>,
    /// Size on the page.
    pub size: Size,
}

impl Chart {
    fn width(&self) -> u32 {
        match self.size {
            Size::Screen if !self.positions.is_empty() => NARROW,
            size => size.pixels(),
        }
    }

    fn height(&self) -> u32 {
        self.top() as u32 + self.panels.iter().map(|p| self.size.height(p.height)).sum::<u32>() + 30
    }

    /// Lines of the title and of the notes.
    fn heading(&self) -> [Vec<String>; 2] {
        let lines_of = |note: &String| wrapped(note, WORDS, self.width());
        [wrapped(&self.title, TITLE, self.width()), self.notes.iter().flat_map(lines_of).collect()]
    }

    /// Top of the notes, of the legend and of the first panel.
    fn tops(&self) -> [i32; 3] {
        let [title, notes] = self.heading();
        let below = 14 + title.len() as i32 * LINE;
        let under = below + 4 + notes.len() as i32 * NOTE;
        let rows = legend_rows(self).iter().map(|e| e.row + 1).max().unwrap_or(0);
        [below, under, under + rows * LINE]
    }

    fn top(&self) -> i32 {
        self.tops()[2]
    }

    /// Returns the dashes of a colour, and its mark. Groups of several lines are drawn through.
    fn manner(&self, colour: usize) -> (&'static [i32], Option<Mark>) {
        let curves = || self.panels.iter().flat_map(|p| &p.curves).filter(|c| c.colour == colour);
        let alone = curves().any(|c| matches!(c.shape, Shape::Line(_)) && c.among <= 1);
        let mark = curves().find_map(|c| match &c.shape {
            Shape::Marked(mark, _) | Shape::Points(mark, _) => Some(*mark),
            _ => None,
        });
        (if alone { dashes(colour) } else { &[] }, mark.filter(|mark| *mark != Mark::Bar))
    }
}

fn dashes(colour: usize) -> &'static [i32] {
    DASHES[colour % DASHES.len()]
}

/// A plot with its own axis of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Panel {
    /// Name and unit of the values.
    pub label: String,
    /// Height in pixels.
    pub height: u32,
    /// Bottom of the axis. Lower values are drawn there.
    pub low: f64,
    /// Top of the axis. Higher values are drawn there.
    pub high: f64,
    /// Curves; the last one is drawn on top.
    pub curves: Vec<Curve>,
    /// Dashed lines across, with a label.
    pub marks: Vec<(f64, String)>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// Index of the colour: the entry of the legend.
    pub colour: usize,
    /// Number of lines of this colour: the more, the paler each.
    pub among: usize,
    /// Shape.
    pub shape: Shape,
}

/// Shape of a curve.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A line.
    Line(Vec<Point>),
    /// Broad pale steps behind other lines: pairs of points, each pair a step.
    Broad(Vec<Point>),
    /// Area between low and high.
    Band(Vec<Spread>),
    /// Values with their ranges, and a mark at each.
    Marked(Mark, Vec<Spread>),
    /// Points with their ranges along both axes and their names.
    Points(Mark, Vec<Spot>),
}

/// Point with its ranges and its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    /// Lowest, mean and highest value along the horizontal axis.
    pub across: [f64; 3],
    /// Lowest, mean and highest value along the vertical axis.
    pub up: [f64; 3],
    /// Name; empty for none.
    pub name: String,
}

/// Mark at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Broad bar from low to high.
    Bar,
    /// Empty square.
    Square,
    /// Full circle.
    Circle,
    /// Full triangle.
    Triangle,
    /// Full square.
    Block,
    /// Empty circle.
    Ring,
    /// Diagonal cross.
    Cross,
}

impl Mark {
    /// Returns the mark of a colour where each has its own.
    pub const fn of(colour: usize) -> Mark {
        const MARKS: [Mark; 6] =
            [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Ring, Mark::Cross, Mark::Block];
        MARKS[colour % MARKS.len()]
    }
}

impl Curve {
    fn points(&self) -> Vec<Point> {
        match &self.shape {
            Shape::Line(points) | Shape::Broad(points) => points.clone(),
            Shape::Marked(_, spread) => spread.iter().map(|s| (s.t, s.mean)).collect(),
            Shape::Points(_, spots) => spots.iter().map(|s| (s.across[1], s.up[1])).collect(),
            Shape::Band(spread) => {
                let up = spread.iter().map(|s| (s.t, s.high));
                up.chain(spread.iter().rev().map(|s| (s.t, s.low))).collect()
            }
        }
    }
}

fn colour(i: usize) -> RGBColor {
    PALETTE[i % PALETTE.len()]
}

/// Removes characters that XML cannot hold.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn fault(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// Draws the chart as an SVG document.
pub(super) fn svg(chart: &Chart) -> Drawn<String> {
    let (mut text, size) = (String::new(), (chart.width(), chart.height()));
    paint(SVGBackend::with_string(&mut text, size).into_drawing_area(), chart)?;
    Ok(match chart.size {
        Size::Screen => text,
        // Sizes on paper: those in pixels are still in `viewBox`.
        of => {
            let (points, pixels) = (of.points(), f64::from(size.0));
            let [width, height] =
                [size.0, size.1].map(|n| format!("{:.2}pt", f64::from(n) * points / pixels));
            let (wide, high) = (format!("width=\"{}\"", size.0), format!("height=\"{}\"", size.1));
            let text = text.replacen(&wide, &format!("width=\"{width}\""), 1);
            text.replacen(&high, &format!("height=\"{height}\""), 1)
        }
    })
}

/// Draws the chart as a PDF document of one page.
pub(super) fn pdf(chart: &Chart) -> Drawn<Vec<u8>> {
    let (mut document, size) = (Vec::new(), (chart.width(), chart.height()));
    let width = chart.size.points() * f64::from(size.0) / f64::from(chart.size.pixels());
    paint(Pdf::new(&mut document, size, width).into_drawing_area(), chart)?;
    Ok(document)
}

fn paint<B: DrawingBackend>(root: Area<B>, chart: &Chart) -> Drawn<()> {
    let [title, notes] = chart.heading();
    let [below, under, mut y] = chart.tops();
    root.fill(&WHITE).map_err(fault)?;
    let left = LEFT as i32;
    for (i, line) in (0..).zip(&title) {
        words(&root, line, (left, 12 + i * LINE), TITLE, INK)?;
    }
    for (i, note) in (0..).zip(&notes) {
        words(&root, note, (left, below + i * NOTE), WORDS, SOFT)?;
    }
    for entry in legend_rows(chart) {
        entry.draw(&root, (left + entry.x, under + entry.row * LINE))?;
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        let last = i + 1 == chart.panels.len();
        let across = Some(&*chart.across).filter(|a| !a.is_empty()).unwrap_or("time, s");
        draw(&root, panel, y, chart, last.then_some(across))?;
        y += chart.size.height(panel.height) as i32;
    }
    root.present().map_err(fault)
}

/// Cuts text into lines that fit beside the axis.
fn wrapped(text: &str, size: u32, width: u32) -> Vec<String> {
    // A character is half as wide as it is high, or a little more.
    let most = ((width - LEFT - MARGIN) * 20 / (size * 11)) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= most) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_string()),
        }
    }
    lines
}

fn words<B: DrawingBackend>(
    root: &Area<B>,
    text: &str,
    at: (i32, i32),
    size: u32,
    ink: RGBColor,
) -> Drawn<()> {
    let style = ("sans-serif", size).into_font().color(&ink).pos(Pos::new(HPos::Left, VPos::Top));
    root.draw(&Text::new(clean(text), at, style)).map_err(fault)
}

/// Entry of the legend: its row and its distance from the left.
struct Entry {
    name: String,
    row: i32,
    x: i32,
    /// Number of the colour; `None` for the marks.
    colour: Option<usize>,
    /// Dashes of the colour, and its mark.
    manner: (&'static [i32], Option<Mark>),
}

impl Entry {
    fn draw<B: DrawingBackend>(&self, root: &Area<B>, (x, y): (i32, i32)) -> Drawn<()> {
        let ends = [(x, y + 8), (x + 24, y + 8)];
        let Some(number) = self.colour else {
            line(root, &ends, &[7, 5], INK.stroke_width(2))?;
            return words(root, &self.name, (x + 30, y + 1), WORDS, INK);
        };
        let (dashes, mark) = self.manner;
        // A line that is told by its dashes or its mark is as thick as in the plot.
        let width = if dashes.is_empty() && mark.is_none() { 4 } else { 2 };
        line(root, &ends, dashes, colour(number).stroke_width(width))?;
        if let Some(mark) = mark {
            marked(root, mark, [(x + 12, y + 8); 3], (5, 5), colour(number))?;
        }
        words(root, &self.name, (x + 30, y + 1), WORDS, INK)
    }
}

/// Places the entries of the legend in rows as wide as the plot.
fn legend_rows(chart: &Chart) -> Vec<Entry> {
    let width = (chart.width() - LEFT) as i32 - 20;
    let names = chart.legend.iter().enumerate().map(|(i, name)| (name, Some(i)));
    let marks = Some((&chart.marks, None)).filter(|(name, _)| !name.is_empty());
    let (mut row, mut x) = (0, 0);
    names
        .chain(marks)
        .map(|(name, colour)| {
            let wide = 30 + CHARACTER * name.chars().count() as i32 + 18;
            if x > 0 && x + wide > width {
                (row, x) = (row + 1, 0);
            }
            let manner = colour.map_or((&[][..], None), |colour| chart.manner(colour));
            let entry = Entry { name: name.clone(), row, x, colour, manner };
            x += wide;
            entry
        })
        .collect()
}

/// Draws a panel; the last panel names the horizontal axis by `across`.
fn draw<B: DrawingBackend>(
    root: &Area<B>,
    panel: &Panel,
    y: i32,
    chart: &Chart,
    across: Option<&str>,
) -> Drawn<()> {
    let (from, until, named) = (chart.from, chart.until, !chart.positions.is_empty());
    let aside = if panel.marks.is_empty() || named { MARGIN } else { RIGHT };
    let last = across.is_some();
    let extra = if last { 26 } else { 0 };
    let height = chart.size.height(panel.height) as i32 + extra;
    let area = root.clone().shrink((0, y), (chart.width(), height as u32));
    let mut plot = ChartBuilder::on(&area)
        .margin_top(8)
        .margin_left(MARGIN)
        .margin_right(if chart.size == Size::Screen && !named { RIGHT } else { aside })
        .set_label_area_size(LabelAreaPosition::Left, LEFT - MARGIN)
        .set_label_area_size(LabelAreaPosition::Bottom, if last { 46 } else { 22 })
        .build_cartesian_2d(from..until, panel.low..panel.high)
        .map_err(fault)?;
    let mut mesh = plot.configure_mesh();
    if named {
        mesh.disable_x_mesh();
    }
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(SOFT)
        .x_labels(if named { 0 } else { (chart.width() / 80) as usize })
        .y_labels((chart.size.height(panel.height) / 32) as usize)
        .x_desc(clean(across.unwrap_or_default()))
        .y_desc(clean(&panel.label))
        .label_style(("sans-serif", WORDS).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 16).into_font().color(&INK))
        .x_label_formatter(&|t| number(*t))
        .y_label_formatter(&|v| number(*v))
        .draw()
        .map_err(fault)?;
    let inside = |(t, v): Point| (t.clamp(from, until), v.clamp(panel.low, panel.high));
    let mut named_at = Vec::new();
    for curve in &panel.curves {
        let points: Vec<Point> = curve.points().into_iter().map(inside).collect();
        let colour = colour(curve.colour);
        match &curve.shape {
            Shape::Line(_) => {
                let style = match curve.among {
                    0 | 1 => colour.stroke_width(2),
                    2..=4 => colour.mix(0.8).stroke_width(1),
                    _ => colour.mix(0.5).stroke_width(1),
                };
                let dashes = if curve.among <= 1 { dashes(curve.colour) } else { &[] };
                let places: Vec<_> = points.iter().map(|point| plot.backend_coord(point)).collect();
                line(root, &places, dashes, style)?;
                continue;
            }
            Shape::Broad(_) => {
                let style = colour.mix(0.3).stroke_width(8);
                plot.draw_series(points.chunks(2).map(|step| PathElement::new(step.to_vec(), style)))
            }
            Shape::Band(_) => plot.draw_series([Polygon::new(points, colour.mix(0.25))]),
            Shape::Marked(mark, spread) => {
                let half =
                    ((plot.backend_coord(&(BAR / 2.0, 0.0)).0 - plot.backend_coord(&(0.0, 0.0)).0).max(1), 5);
                for s in spread {
                    let at = [s.low, s.mean, s.high].map(|v| plot.backend_coord(&inside((s.t, v))));
                    marked(root, *mark, at, half, colour)?;
                }
                continue;
            }
            Shape::Points(mark, spots) => {
                for spot in spots {
                    let place = |across: f64, up: f64| plot.backend_coord(&inside((across, up)));
                    let at = [0, 1, 2].map(|i| place(spot.across[1], spot.up[i]));
                    let ends = [place(spot.across[0], spot.up[1]), place(spot.across[2], spot.up[1])];
                    line(root, &ends, &[], colour.stroke_width(1))?;
                    marked(root, *mark, at, (5, 5), colour)?;
                    let (x, y) = (at[1].0 + 8, at[1].1 - 17);
                    // A name that would cover another one is left out.
                    if named_at.iter().all(|(a, b): &(i32, i32)| (a - x).abs() > 48 || (b - y).abs() > 12) {
                        words(root, &spot.name, (x, y), 13, INK)?;
                        named_at.push((x, y));
                    }
                }
                continue;
            }
        }
        .map_err(fault)?;
    }
    if named && last {
        let at = |i: f64| plot.backend_coord(&(i + 0.5, panel.low));
        positions(root, &chart.positions, at)?;
    }
    for (v, _) in &panel.marks {
        let ends = [(from, *v), (until, *v)].map(|point| plot.backend_coord(&inside(point)));
        line(root, &ends, &[7, 5], INK.stroke_width(2))?;
    }
    let x = plot.backend_coord(&(until, panel.low)).0 + 8;
    let ys = panel.marks.iter().map(|(v, _)| plot.backend_coord(&inside((until, *v))).1);
    let places = apart(&ys.collect::<Vec<_>>(), 15);
    for ((_, label), y) in panel.marks.iter().zip(places) {
        words(root, label, (x, y - 6), WORDS, INK)?;
    }
    Ok(())
}

/// Draws a line with its dashes.
fn line<B: DrawingBackend>(
    root: &Area<B>,
    places: &[(i32, i32)],
    dashes: &[i32],
    style: ShapeStyle,
) -> Drawn<()> {
    if dashes.is_empty() {
        return root.draw(&PathElement::new(places.to_vec(), style)).map_err(fault);
    }
    for dash in dashed(places, dashes) {
        root.draw(&PathElement::new(dash, style)).map_err(fault)?;
    }
    Ok(())
}

/// Cuts a line into dashes: lengths of lines and gaps in turn.
fn dashed(places: &[(i32, i32)], dashes: &[i32]) -> Vec<Vec<(i32, i32)>> {
    let mut lengths = dashes.iter().map(|n| f64::from(*n)).cycle();
    let (mut out, mut on) = (Vec::new(), true);
    let mut left = lengths.next().unwrap_or(f64::INFINITY);
    let mut dash: Vec<(i32, i32)> = places.first().copied().into_iter().collect();
    for ends in places.windows(2) {
        let [(x, y), (to_x, to_y)] = [ends[0], ends[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (to_x - x).hypot(to_y - y);
        let mut gone = 0.0;
        while length - gone > left {
            gone += left;
            let share = gone / length;
            let place = ((x + (to_x - x) * share).round() as i32, (y + (to_y - y) * share).round() as i32);
            dash.push(place);
            let ended = std::mem::replace(&mut dash, vec![place]);
            out.extend(Some(ended).filter(|_| on));
            on = !on;
            left = lengths.next().unwrap_or(f64::INFINITY);
        }
        left -= length - gone;
        dash.push(ends[1]);
    }
    out.extend(Some(dash).filter(|dash| on && dash.len() > 1));
    out
}

/// Draws the mark at a value, with a thin line over its range. `half` is half the width of a bar and of other
/// marks.
fn marked<B: DrawingBackend>(
    root: &Area<B>,
    mark: Mark,
    at: [(i32, i32); 3],
    half: (i32, i32),
    colour: RGBColor,
) -> Drawn<()> {
    let [low, mean, high] = at;
    let line = |ends: [(i32, i32); 2], width| {
        root.draw(&PathElement::new(ends, colour.stroke_width(width))).map_err(fault)
    };
    match mark {
        Mark::Bar => {
            let (left, right) = (low.0 - half.0, low.0 + half.0);
            let area = Rectangle::new([(left, high.1), (right, low.1)], colour.mix(0.25).filled());
            root.draw(&area).map_err(fault)?;
            line([(left, low.1), (right, low.1)], 3)?;
            line([(left, high.1), (right, high.1)], 3)
        }
        Mark::Square => {
            line([low, high], 1)?;
            let [from, to] = [-half.1, half.1].map(|d| (mean.0 + d, mean.1 + d));
            root.draw(&Rectangle::new([from, to], colour.stroke_width(2))).map_err(fault)
        }
        Mark::Circle => {
            line([low, high], 1)?;
            root.draw(&Circle::new(mean, half.1, colour.filled())).map_err(fault)
        }
        Mark::Triangle => {
            line([low, high], 1)?;
            root.draw(&TriangleMarker::new(mean, half.1 + 1, colour.filled())).map_err(fault)
        }
        Mark::Block => {
            line([low, high], 1)?;
            let [from, to] = [-half.1, half.1].map(|d| (mean.0 + d, mean.1 + d));
            root.draw(&Rectangle::new([from, to], colour.filled())).map_err(fault)
        }
        Mark::Ring => {
            line([low, high], 1)?;
            root.draw(&Circle::new(mean, half.1, WHITE.filled())).map_err(fault)?;
            root.draw(&Circle::new(mean, half.1, colour.stroke_width(2))).map_err(fault)
        }
        Mark::Cross => {
            line([low, high], 1)?;
            root.draw(&Cross::new(mean, half.1, colour.stroke_width(2))).map_err(fault)
        }
    }
}

/// Writes the names of positions below the axis, as many as have room.
fn positions<B: DrawingBackend>(
    root: &Area<B>,
    names: &[String],
    at: impl Fn(f64) -> (i32, i32),
) -> Drawn<()> {
    let widest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0) as i32;
    let apart = (at(1.0).0 - at(0.0).0).max(1);
    let step = ((CHARACTER * widest + 6) / apart + 1) as usize;
    for (i, name) in names.iter().enumerate().step_by(step) {
        let (x, y) = at(i as f64);
        let style = ("sans-serif", 13).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
        root.draw(&Text::new(clean(name), (x, y + 6), style)).map_err(fault)?;
    }
    Ok(())
}

/// Moves labels up where needed so that neighbours are `gap` apart at least. Their order stays, and the
/// lowest is placed first.
fn apart(ys: &[i32], gap: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..ys.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(ys[i]));
    let mut out = ys.to_vec();
    for pair in order.windows(2) {
        out[pair[1]] = out[pair[1]].min(out[pair[0]] - gap);
    }
    out
}

/// Formats a number at an axis, as short as possible with up to six decimals.
fn number(v: f64) -> String {
    let text = format!("{v:.6}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0" } else { short }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_axes() {
        assert_eq!([0.0, -0.0, 12.5, 100.0, 0.1 + 0.2].map(number), ["0", "0", "12.5", "100", "0.3"]);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        assert_eq!(apart(&[100, 95, 50], 15), [100, 85, 50]);
        assert_eq!(apart(&[95, 100], 15), [85, 100]);
        assert_eq!(apart(&[], 15), [0; 0]);
    }

    #[test]
    fn dashes_go_round_corners() {
        // Ten along and ten down, in lines of 6 and gaps of 2: 0-6, 8-14, 16-20.
        let got = dashed(&[(0, 0), (10, 0), (10, 10)], &[6, 2]);
        let want = [vec![(0, 0), (6, 0)], vec![(8, 0), (10, 0), (10, 4)], vec![(10, 6), (10, 10)]];
        assert_eq!(got, want);
        assert_eq!(dashed(&[], &[6, 2]), Vec::<Vec<(i32, i32)>>::new());
    }

    #[test]
    fn sizes_are_those_of_paper() {
        let panel = Panel { height: 300, high: 1.0, ..Panel::default() };
        let chart = Chart { panels: vec![panel], until: 1.0, size: Size::Column, ..Chart::default() };
        // 210 pixels for the panel, 18 above and 30 below it, at 0.6 points each.
        let svg = svg(&chart).expect("it is drawn");
        assert!(
            svg.starts_with("<svg width=\"252.00pt\" height=\"154.80pt\" viewBox=\"0 0 420 258\""),
            "{svg:.90}"
        );
        let pdf = pdf(&chart).expect("it is drawn");
        assert!(String::from_utf8_lossy(&pdf).contains("/MediaBox [0 0 252 154.8]"));
    }

    #[test]
    fn long_titles_take_more_lines() {
        // 544 pixels hold 54 characters of 18 pixels, which are 9.9 wide.
        let words = ["word"; 30].join(" ");
        let lines = wrapped(&words, TITLE, WIDTH);
        assert!(lines.iter().all(|line| line.len() <= 54), "{lines:?}");
        assert_eq!((lines.len(), lines.join(" ")), (3, words));
        assert_eq!(wrapped("", TITLE, WIDTH), [""; 0]);
    }

    #[test]
    fn a_long_legend_takes_more_rows() {
        // An entry of 22 characters takes 30 + 8 x 22 + 18 = 224 of 540 pixels: two fit.
        let chart = Chart {
            legend: vec!["a name of 22 characters".chars().take(22).collect(); 9],
            ..Chart::default()
        };
        let rows: Vec<(i32, i32)> = legend_rows(&chart).iter().map(|e| (e.row, e.x)).collect();
        assert_eq!(rows[..3], [(0, 0), (0, 224), (1, 0)]);
        assert_eq!(rows[8], (4, 0));
    }
}
