//! The report as one page of HTML that needs nothing else: no script, no font, no picture in a file.

use super::judge::{short, Verdict};
use super::outcome::{ColumnOutcome, PaperOutcome, Report, RowOutcome, SeriesOutcome, Spread};
use super::picture::picture;
use std::fmt::Write;

/// Style of the page. Charts keep the colours of the one writer of charts; a dark page overrides them.
const STYLE: &str = include_str!("page.css");

/// Writes the page.
pub fn page(report: &Report) -> Result<String, String> {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = writeln!(out, "<title>The papers again</title>\n<style>\n{STYLE}</style>\n</head>\n<body>");
    out.push_str(&head(report));
    for paper in &report.papers {
        self::paper(&mut out, paper)?;
    }
    out.push_str("</body>\n</html>\n");
    Ok(out)
}

/// Returns text with the characters that HTML gives a meaning replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => (),
            c => out.push(c),
        }
    }
    out
}

fn rows(report: &Report) -> impl Iterator<Item = (&PaperOutcome, &RowOutcome)> {
    report.papers.iter().flat_map(|p| p.rows.iter().map(move |r| (p, r)))
}

fn anchor(paper: &PaperOutcome, row: &RowOutcome) -> String {
    escaped(&format!("{}-{}", paper.name, row.id))
}

/// Writes the headline, what does not hold, and the table of all rows.
fn head(report: &Report) -> String {
    let mut out = String::from("<header>\n<h1>The papers again</h1>\n");
    let count = |v: Verdict| rows(report).filter(|(_, r)| r.verdict == v).count();
    let counts = [Verdict::Agrees, Verdict::Better, Verdict::Differs, Verdict::NotReproducible];
    let badges: Vec<String> = counts.iter().map(|v| format!("{} {}", count(*v), badge(*v))).collect();
    let _ = writeln!(out, "<p class=\"counts\">{}</p>", badges.join(" "));
    let worlds: Vec<&str> = report.worlds.iter().map(|w| w.name()).collect();
    let made = format!("Weir {}, {}; worlds: {}.", report.version, report.machine, worlds.join(", "));
    let _ =
        writeln!(out, "<p>{} Runs in virtual time give the same values on any machine.</p>", escaped(&made));
    out.push_str(KEY);
    let first: Vec<_> = rows(report).filter(|(_, r)| r.verdict.needs_reason()).collect();
    if !first.is_empty() {
        out.push_str("<h2>What is not as published</h2>\n<ul class=\"first\">\n");
        for (paper, row) in first {
            let name = escaped(&format!("{}, {}: {}", paper.name, row.covers.join(", "), row.title));
            let _ =
                writeln!(out, "<li><a href=\"#{}\">{name}</a> {}", anchor(paper, row), badge(row.verdict));
            reason(&mut out, row);
            out.push_str("</li>\n");
        }
        out.push_str("</ul>\n");
    }
    out.push_str("<h2>All rows</h2>\n<div class=\"wide\"><table>\n<tr><th>paper</th><th>row</th><th>claim</th><th>verdict</th></tr>\n");
    for (paper, row) in rows(report) {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td></tr>",
            escaped(&paper.name),
            anchor(paper, row),
            escaped(&row.covers.join(", ")),
            escaped(&row.title),
            badge(row.verdict)
        );
    }
    out.push_str("</table></div>\n</header>\n");
    out
}

/// Meaning of the marks in charts.
const KEY: &str = "<p>In charts, bars are values that the paper's text and tables state, empty squares the \
paper's scheme in these worlds (<em>as published</em>), full circles Weir's own scheme, and triangles what \
the same experiment has with the real Linux TCP in the lab. Lines at a mark are the range of several runs. \
A value of Linux is <em>not known</em> if a flow had not ended in one of the runs. \
Where a paper has a picture without numbers, its claims stand below the chart, in other words.</p>\n";

fn badge(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Better => "better",
        Verdict::Differs => "differs",
        Verdict::NotReproducible => "not-here",
    };
    let words = verdict.words().trim_end_matches(", because");
    format!("<span class=\"badge {class}\">{words}</span>")
}

fn paper(out: &mut String, paper: &PaperOutcome) -> Result<(), String> {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escaped(&paper.title));
    let _ = writeln!(out, "<p>{}. <code>weir repro {}</code></p>", escaped(&paper.by), escaped(&paper.name));
    for row in &paper.rows {
        self::row(out, paper, row)?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn row(out: &mut String, paper: &PaperOutcome, row: &RowOutcome) -> Result<(), String> {
    let _ = writeln!(out, "<article id=\"{}\">", anchor(paper, row));
    let title = escaped(&format!("{}: {}", row.covers.join(", "), row.title));
    let _ = writeln!(out, "<h3>{title} {}</h3>", badge(row.verdict));
    let _ = writeln!(out, "<p>{}</p>", escaped(&row.claim));
    reason(out, row);
    if let Some(svg) = picture(row)? {
        let name = escaped(&format!("Chart: {}", row.title));
        let _ = writeln!(out, "<figure role=\"img\" aria-label=\"{name}\">\n{}\n</figure>", svg.trim());
    }
    if !row.series.is_empty() {
        table(out, row);
    }
    if !row.says.is_empty() {
        out.push_str("<ul class=\"claims\">\n");
        for claim in &row.says {
            let mark = if claim.holds { "holds" } else { "does not hold" };
            let class = if claim.holds { "agrees" } else { "differs" };
            let (words, found) = (escaped(&claim.words), escaped(&claim.found));
            let _ = writeln!(out, "<li><span class=\"badge {class}\">{mark}</span> {words} ({found})</li>");
        }
        out.push_str("</ul>\n");
    }
    facts(out, row);
    out.push_str("</article>\n");
    Ok(())
}

/// Writes what differs, and why.
fn reason(out: &mut String, row: &RowOutcome) {
    if !row.verdict.needs_reason() {
        return;
    }
    let differences = escaped(&row.differences.join("; "));
    let because = match row.because.is_empty() {
        true => "<strong>no reason is given, which is an error of this report</strong>".to_string(),
        false => escaped(&row.because),
    };
    let shown: Vec<String> = row.shown_by.iter().map(|f| format!("<code>{}</code>", escaped(f))).collect();
    let shown = if shown.is_empty() { String::new() } else { format!(" Shown by {}.", shown.join(", ")) };
    let found = if differences.is_empty() { String::new() } else { format!("{differences}.<br>") };
    let _ = writeln!(out, "<p class=\"because\">{found}<strong>Because:</strong> {because}{shown}</p>");
}

/// Columns of a row's table that have something in them.
struct Columns {
    schemes: bool,
    published: bool,
    /// Measured columns, each with whether it has deviations; `None` for a column that the row lacks.
    measured: [Option<bool>; 2],
    /// Flags: the column has values of the lab.
    lab: [bool; 2],
}

impl Columns {
    fn of(row: &RowOutcome) -> Columns {
        let there = |of: fn(&SeriesOutcome) -> &Option<ColumnOutcome>| {
            let columns = || row.series.iter().filter_map(|s| of(s).as_ref());
            let off = columns().any(|c| c.deviation.iter().any(Option::is_some));
            columns().next().map(|_| off)
        };
        let in_the_lab = |of: fn(&SeriesOutcome) -> &Option<ColumnOutcome>| {
            row.series.iter().filter_map(|s| of(s).as_ref()).any(|c| !c.lab.is_empty())
        };
        Columns {
            schemes: row.series.len() > 1,
            published: row.series.iter().any(|s| s.published.iter().any(Option::is_some)),
            measured: [there(|s| &s.as_published), there(|s| &s.weir)],
            lab: [in_the_lab(|s| &s.as_published), in_the_lab(|s| &s.weir)],
        }
    }

    fn head(&self, row: &RowOutcome) -> String {
        let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
        let mut heads = vec![row.across.clone()];
        heads.extend(self.schemes.then(|| "scheme".to_string()));
        heads.extend(self.published.then(|| format!("published{unit}")));
        for ((off, lab), name) in self.measured.iter().zip(self.lab).zip(["as published", "Weir"]) {
            heads.extend(off.map(|_| format!("{name}{}", if self.published { "" } else { &unit })));
            heads.extend((*off == Some(true)).then(|| "off".to_string()));
            heads.extend(lab.then(|| format!("{name}, Linux")));
        }
        heads.iter().map(|h| format!("<th>{}</th>", escaped(h))).collect()
    }

    fn line(&self, x: &str, series: &SeriesOutcome, i: usize) -> String {
        let mut cells = vec![escaped(x)];
        cells.extend(self.schemes.then(|| escaped(&series.name)));
        cells.extend(self.published.then(|| published(series, i)));
        let columns = [&series.as_published, &series.weir];
        for ((off, lab), column) in self.measured.iter().zip(self.lab).zip(columns) {
            let value = |of: fn(&ColumnOutcome) -> &Vec<Option<Spread>>, unknown: &str| {
                let value = column.as_ref().and_then(|c| of(c).get(i).copied());
                value.map_or("&ndash;".into(), |v| v.map_or(unknown.into(), ranged))
            };
            cells.extend(off.map(|_| value(|c| &c.values, "&ndash;")));
            let distance = column.as_ref().and_then(|c| c.deviation.get(i).copied().flatten());
            let distance = || distance.map_or(String::new(), |d| format!("{:+.1} %", d * 100.0 + 0.0));
            cells.extend((*off == Some(true)).then(distance));
            cells.extend(lab.then(|| value(|c| &c.lab, "not known")));
        }
        cells.iter().map(|c| format!("<td>{c}</td>")).collect()
    }
}

/// Writes the values of a row.
fn table(out: &mut String, row: &RowOutcome) {
    let columns = Columns::of(row);
    let head = columns.head(row);
    let _ = writeln!(out, "<div class=\"wide\"><table class=\"numbers\">\n<tr>{head}</tr>");
    for (i, x) in row.x.iter().map(String::as_str).chain(row.x.is_empty().then_some("")).enumerate() {
        for series in &row.series {
            let _ = writeln!(out, "<tr>{}</tr>", columns.line(x, series, i));
        }
    }
    out.push_str("</table></div>\n");
}

fn published(series: &SeriesOutcome, i: usize) -> String {
    match series.published.get(i).copied().flatten() {
        None => "&ndash;".into(),
        Some([low, high]) if low == high => short(low),
        Some([low, high]) => format!("{} to {}", short(low), short(high)),
    }
}

fn ranged(v: Spread) -> String {
    match (short(v.low), short(v.high)) {
        (low, high) if low == high => short(v.mean),
        (low, high) => format!("{} ({low} to {high})", short(v.mean)),
    }
}

/// Writes the command, times, seeds, tolerance and checks.
fn facts(out: &mut String, row: &RowOutcome) {
    out.push_str("<dl>\n");
    let mut fact = |name: &str, text: &str| {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{text}</dd>");
    };
    fact("Command", &format!("<code>{}</code>", escaped(&row.command)));
    let seeds: Vec<String> = row.seeds.iter().map(u64::to_string).collect();
    let took = format!(
        "{} expected on two processors; runs took {} s in all",
        expected(row.minutes),
        short(row.seconds)
    );
    fact("Time", &escaped(&took));
    if !row.tolerance.is_empty() {
        fact("Tolerance", &escaped(&format!("{}: {}", row.tolerance, row.tolerance_from)));
    }
    if !row.seeds.is_empty() {
        fact("Seeds", &escaped(&seeds.join(", ")));
    }
    for e in &row.experiments {
        let mut text = format!(
            "<code>{}</code>, {}, runs: {}, checks that hold: {}",
            escaped(&e.file),
            e.world.name(),
            e.runs,
            e.held
        );
        if e.inconclusive {
            text.push_str("; inconclusive: the machine was overloaded");
        }
        for failed in &e.failed {
            let _ = write!(text, "<br><strong>fails:</strong> {}", escaped(failed));
        }
        fact("Experiment", &text);
    }
    if row.needless_reason {
        fact("Note", &escaped(&format!("nothing differs, and yet a reason is given: {}", row.because)));
    }
    out.push_str("</dl>\n");
}

fn expected(minutes: f64) -> String {
    match minutes < 1.0 {
        true => format!("{} s", short((minutes * 60.0).ceil())),
        false => format!("{} min", short(minutes)),
    }
}

#[cfg(test)]
mod tests;
