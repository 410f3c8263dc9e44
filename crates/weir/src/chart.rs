//! Results as files: series as CSV, and charts as SVG.
//!
//! Charts are drawn with plotters' SVG backend, which needs no fonts: a viewer brings its own.

use crate::plan::Plan;
use crate::result::{FlowResult, RunResult, RECEIVED};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Colours that people with any colour vision tell apart (Okabe, Ito 2008), the light one left out.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);
const WIDTH: u32 = 960;
/// Height of one panel.
const PANEL: u32 = 300;
const TITLE: u32 = 44;
/// More groups than this share one panel.
const PANELS: usize = 4;
/// Up to this many flows of a panel have a colour each.
const COLOURS: usize = 4;

/// Writes every series as CSV and the charts that the result has data for into `dir`, which is made if
/// needed. Returns the files. Errors name the file.
pub fn write_all(dir: &Path, plan: &Plan, result: &RunResult) -> Result<Vec<PathBuf>, String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut files = Vec::new();
    let mut put = |name: String, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        files.push(path);
        Ok::<(), String>(())
    };
    for name in result.series.keys() {
        put(format!("{}.csv", file_name(name)), csv(result, name))?;
    }
    let title = if plan.title.is_empty() { &plan.name } else { &plan.title };
    let bin_s = plan.bin.as_secs_f64();
    for (name, chart) in [
        ("rate.svg", rates(title, bin_s, result)),
        ("bytes.svg", bytes(title, bin_s, result)),
        ("rtt.svg", column(title, "rtt_us", "RTT, ms", 1e-3, result)),
        ("held.svg", column(title, "held_bytes", "held by the gateway, kB", 1e-3, result)),
    ] {
        if let Some(chart) = chart {
            put(name.to_string(), chart.map_err(|e| format!("{name}: {e}"))?)?;
        }
    }
    Ok(files)
}

/// A series name as a file name: names are made of harmless characters, but a result may come from
/// elsewhere.
fn file_name(series: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    series.trim_start_matches('.').chars().map(|c| if good(c) { c } else { '_' }).collect()
}

/// A series as CSV: a header, then a line for each row.
pub fn csv(result: &RunResult, name: &str) -> String {
    let mut out = String::from("t_s");
    let Some(series) = result.series.get(name) else {
        return out + "\n";
    };
    for column in series.columns.keys() {
        out.push(',');
        out.push_str(column);
    }
    out.push('\n');
    for (i, t) in series.t_s.iter().enumerate() {
        let _ = write!(out, "{t}");
        for column in series.columns.values() {
            out.push(',');
            if let Some(v) = column.0.get(i) {
                let _ = write!(out, "{v}");
            }
        }
        out.push('\n');
    }
    out
}

/// A line of a chart.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// A panel of a chart: lines that share a scale.
struct Panel {
    name: String,
    lines: Vec<Line>,
    /// What the lines should be at.
    target: Option<f64>,
}

/// Flows in groups that belong together: the same class and setting, or the same group of the plan.
fn panels(
    result: &RunResult,
    line: impl Fn(&FlowResult) -> Option<Vec<(f64, f64)>>,
    scale: f64,
) -> Vec<Panel> {
    let mut out: Vec<(String, Panel)> = Vec::new();
    for f in &result.flows {
        let Some(points) = line(f) else { continue };
        let group = f.id.rsplit_once('.').map_or(f.id.as_str(), |(g, _)| g);
        let name = if f.class.is_empty() { group } else { &f.class };
        let key = format!("{name} {:?}", f.target_bps);
        let line = Line { name: f.id.clone(), points };
        match out.iter_mut().find(|(k, _)| *k == key) {
            Some((_, panel)) => panel.lines.push(line),
            None => {
                let target = f.target_bps.map(|t| t as f64 * scale);
                out.push((key, Panel { name: name.to_string(), lines: vec![line], target }));
            }
        }
    }
    let mut panels: Vec<Panel> = out.into_iter().map(|(_, p)| p).collect();
    if panels.len() > PANELS {
        let lines = panels.into_iter().flat_map(|p| p.lines).collect();
        panels = vec![Panel { name: "all flows".to_string(), lines, target: None }];
    }
    panels
}

fn received<'a>(result: &'a RunResult, f: &FlowResult) -> Option<&'a [f64]> {
    Some(&result.series.get(&f.id)?.columns.get(RECEIVED)?.0)
}

/// Bins that make a point of the rate chart: about 200 points, of a round length.
fn step(bin_s: f64, duration_s: f64) -> usize {
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
    let wanted = duration_s / 200.0 / bin_s;
    steps.into_iter().find(|&s| s as f64 >= wanted).unwrap_or(20_000)
}

type Svg = Result<String, String>;

fn rates(title: &str, bin_s: f64, result: &RunResult) -> Option<Svg> {
    let n = step(bin_s, result.duration_s);
    let len_s = n as f64 * bin_s;
    let line = |f: &FlowResult| {
        let mean = |(i, bins): (usize, &[f64])| {
            ((i as f64 + 0.5) * len_s, bins.iter().sum::<f64>() * 8.0 / len_s / 1e6)
        };
        let alive =
            |p: &(f64, f64)| p.0 - len_s / 2.0 >= f.start_s - 1e-9 && p.0 + len_s / 2.0 <= f.end_s + 1e-9;
        let bins = received(result, f)?;
        Some(bins.chunks_exact(n).enumerate().map(mean).filter(alive).collect())
    };
    let panels = panels(result, line, 1e-6);
    let unit = format!("Mbit/s, means of {} ms", (len_s * 1e3).round());
    draw(title, &unit, result.duration_s, &panels)
}

fn bytes(title: &str, bin_s: f64, result: &RunResult) -> Option<Svg> {
    let n = step(bin_s, result.duration_s);
    let len_s = n as f64 * bin_s;
    let line = |f: &FlowResult| {
        let mut sum = 0.0;
        let mut points = vec![(f.start_s, 0.0)];
        for (i, bins) in received(result, f)?.chunks(n).enumerate() {
            sum += bins.iter().sum::<f64>() / 1e6;
            let t = ((i + 1) as f64 * len_s).min(result.duration_s);
            if t > f.start_s && t <= f.end_s + len_s {
                points.push((t, sum));
            }
        }
        Some(points)
    };
    let mut panels = panels(result, line, 1.0);
    for p in &mut panels {
        p.target = None;
    }
    draw(title, "MB received", result.duration_s, &panels)
}

fn column(title: &str, name: &str, unit: &str, scale: f64, result: &RunResult) -> Option<Svg> {
    let line = |f: &FlowResult| {
        let series = result.series.get(&f.id)?;
        let values = &series.columns.get(name)?.0;
        Some(series.t_s.iter().zip(values).map(|(&t, &v)| (t, v * scale)).collect())
    };
    let mut panels = panels(result, line, 1.0);
    for p in &mut panels {
        p.target = None;
    }
    draw(title, unit, result.duration_s, &panels)
}

fn draw(title: &str, unit: &str, duration_s: f64, panels: &[Panel]) -> Option<Svg> {
    if panels.iter().all(|p| p.lines.iter().all(|l| l.points.is_empty())) || duration_s <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    let height = TITLE + PANEL * panels.len() as u32;
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw_on(&root, title, unit, duration_s, panels)
    };
    Some(drawn.map(|()| svg).map_err(|e| e.to_string()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_on(
    root: &Area,
    title: &str,
    unit: &str,
    duration_s: f64,
    panels: &[Panel],
) -> Result<(), Box<dyn std::error::Error>> {
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(TITLE);
    head.draw_text(title, &TextStyle::from(("sans-serif", 19)).color(&INK), (16, 14))?;
    for (i, (area, panel)) in body.split_evenly((panels.len(), 1)).iter().zip(panels).enumerate() {
        draw_panel(area, unit, duration_s, panel, i)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    area: &Area,
    unit: &str,
    duration_s: f64,
    panel: &Panel,
    number: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let values = panel.lines.iter().flat_map(|l| &l.points).map(|p| p.1);
    let top = values.chain(panel.target).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.12 } else { 1.0 };
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(24)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..duration_s, 0.0..top)?;
    let text = |size: u32| TextStyle::from(("sans-serif", size)).color(&INK);
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(RGBColor(150, 150, 150))
        .x_labels(11)
        .y_labels(6)
        .x_label_formatter(&|v| short(*v))
        .y_label_formatter(&|v| short(*v))
        .x_desc("time, s")
        .y_desc(unit)
        .label_style(text(13))
        .axis_desc_style(text(13))
        .draw()?;

    let few = panel.lines.len() <= COLOURS;
    for (i, line) in panel.lines.iter().enumerate() {
        // Panels begin with different colours, so that they are not taken for the same thing.
        let of_line = PALETTE[(number + if few { i } else { 0 }) % PALETTE.len()];
        let colour = of_line.mix(if few { 1.0 } else { 0.35 });
        let drawn =
            chart.draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))?;
        let label = match (few, i) {
            (true, _) => line.name.clone(),
            (false, 0) => format!("{}: {} flows", panel.name, panel.lines.len()),
            (false, _) => continue,
        };
        drawn
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3)));
    }
    if let Some(target) = panel.target {
        let ends = [(0.0, target), (duration_s, target)];
        let line = DashedLineSeries::new(ends, 6, 5, INK.stroke_width(1));
        chart.draw_series(line)?.label(format!("set to {}", short(target))).legend(|(x, y)| {
            plotters::element::DashedPathElement::new([(x, y), (x + 22, y)], 6, 5, INK.stroke_width(1))
        });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .margin(14)
        .legend_area_size(34)
        .background_style(WHITE.mix(0.9))
        .border_style(GRID)
        .label_font(text(13))
        .draw()?;
    Ok(())
}

/// A number on an axis: as short as it is exact.
fn short(v: f64) -> String {
    let rounded = (v * 1e4).round() / 1e4;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{experiment, Source};
    use crate::result::example::{fig12_like, PLAN};

    #[test]
    fn files_of_a_run() {
        let plan = experiment::parse(&Source::new("t.toml", PLAN)).unwrap_or_else(|e| panic!("{e}")).plan;
        let result = fig12_like(&plan);
        // `WEIR_CHARTS=DIR` keeps them, to be looked at.
        let kept = std::env::var_os("WEIR_CHARTS").map(PathBuf::from);
        let dir = kept
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("weir-chart-test-{}", std::process::id())));
        let files = write_all(&dir, &plan, &result).unwrap();
        let names: Vec<String> =
            files.iter().map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names[names.len() - 3..], ["rate.svg", "bytes.svg", "rtt.svg"]);
        assert!(names.contains(&"ten.7.csv".to_string()), "{names:?}");
        let rate = std::fs::read_to_string(dir.join("rate.svg")).unwrap();
        for text in ["set to 5", "set to 10", "five: 8 flows", "Mbit/s, means of 50 ms", "time, s"] {
            assert!(rate.contains(text), "no {text:?}");
        }
        assert!(!rate.contains("NaN") && !rate.contains("inf"));
        let csv = std::fs::read_to_string(dir.join("ten.7.csv")).unwrap();
        assert_eq!(csv.lines().next(), Some("t_s,received_bytes,rtt_us"));
        assert_eq!(csv.lines().count(), 801);
        if kept.is_none() {
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn names_of_series_cannot_leave_the_directory() {
        assert_eq!(file_name("../etc/passwd"), "_etc_passwd");
    }
}
