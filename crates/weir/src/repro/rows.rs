//! Rows of a paper: what it says of each figure and table, and which experiments show it.

use super::judge::{percent, Better, Tolerance};
use crate::experiment::config::diag::{Errors, Fault, Source};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Name of the file with a paper's rows.
pub const FILE: &str = "rows.toml";

/// A paper and its rows.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Name of its folder: `postack`.
    pub name: String,
    /// Title, authors and year.
    pub about: About,
    /// Rows in the order of the file.
    pub rows: Vec<Row>,
    /// Folder of the file.
    pub folder: PathBuf,
    /// The file.
    pub source: Source,
}

/// Facts about a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: String,
    /// Year.
    pub year: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    paper: About,
    row: Vec<Row>,
}

/// A figure, a table or a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name on the command line: `fig9`.
    pub id: Spanned<String>,
    /// Figures and tables of the paper that the row is about: `fig. 9`.
    pub covers: Vec<String>,
    /// Headline.
    pub title: String,
    /// The paper's claim, in words of this project.
    pub claim: String,
    /// Minutes that its runs take on two processors.
    pub minutes: f64,
    /// Number of seeds.
    #[serde(default = "one")]
    pub seeds: u32,
    /// Unit of all values.
    #[serde(default)]
    pub unit: String,
    /// Name of the horizontal axis.
    #[serde(default)]
    pub across: String,
    /// Names of the positions on the horizontal axis; none for a single position.
    #[serde(default)]
    pub x: Vec<String>,
    /// Direction in which values are better.
    #[serde(default)]
    pub better: Better,
    /// Allowed distance from published values: `"10%"`, or a number in the row's unit.
    #[serde(default)]
    pub tolerance: Tolerance,
    /// Source of the tolerance.
    #[serde(default)]
    pub tolerance_from: String,
    /// Values by scheme.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Orders and bounds that the paper states.
    #[serde(default)]
    pub says: Vec<Claim>,
    /// Experiments whose checks belong to the row, besides those that it takes values from.
    #[serde(default)]
    pub checks: Vec<Spanned<String>>,
    /// Experiments that run in the lab if it is asked for.
    #[serde(default)]
    pub lab: Vec<Spanned<String>>,
    /// Reason why the row differs, or why it cannot be had here.
    #[serde(default)]
    pub because: String,
    /// Experiments that show the reason.
    #[serde(default)]
    pub shown_by: Vec<Spanned<String>>,
}

fn one() -> u32 {
    1
}

/// Values of one scheme in a row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name of the scheme.
    pub name: String,
    /// Values that the paper's text or tables state, one for each position; none if it states none.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Values of the paper's scheme in this project's worlds.
    #[serde(default)]
    pub as_published: Vec<Spanned<Measured>>,
    /// Values of Weir's own scheme.
    #[serde(default)]
    pub weir: Vec<Spanned<Measured>>,
}

/// Column of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Values that the paper states.
    Published,
    /// The paper's scheme in this project's worlds.
    AsPublished,
    /// Weir's own scheme.
    Weir,
}

impl Column {
    /// All columns with their names in files.
    pub const ALL: [(&'static str, Column); 3] =
        [("published", Column::Published), ("as_published", Column::AsPublished), ("weir", Column::Weir)];

    /// Returns the name for readers.
    pub const fn words(self) -> &'static str {
        match self {
            Column::Published => "published",
            Column::AsPublished => "as published",
            Column::Weir => "Weir",
        }
    }
}

/// Published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// Range of values; a single value is a range of no width.
    Band(f64, f64),
    /// Position without a value in the paper's text and tables.
    Unstated,
}

impl<'de> Deserialize<'de> for Published {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Published, D::Error> {
        d.deserialize_any(PublishedVisitor)
    }
}

struct PublishedVisitor;

impl<'de> Visitor<'de> for PublishedVisitor {
    type Value = Published;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number, a range [low, high], or \"-\" where the paper states none")
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Published, E> {
        match v.is_finite() {
            true => Ok(Published::Band(v, v)),
            false => Err(E::invalid_value(de::Unexpected::Float(v), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Published, E> {
        self.visit_f64(v as f64)
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Published, E> {
        match v {
            "-" => Ok(Published::Unstated),
            _ => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Published, A::Error> {
        let none = |n| de::Error::invalid_length(n, &self);
        let low: f64 = seq.next_element()?.ok_or_else(|| none(0))?;
        let high: f64 = seq.next_element()?.ok_or_else(|| none(1))?;
        match seq.next_element::<f64>()? {
            None if low <= high => Ok(Published::Band(low, high)),
            None => Err(de::Error::custom(format!("{low} is above {high}: write the lower value first"))),
            Some(_) => Err(none(3)),
        }
    }
}

/// Value of an experiment, or several: one for each value of `sweep`, each interval or each flow.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Experiment, from the folder of the rows.
    pub file: String,
    /// Measure, as in `[[expect]]`.
    pub what: String,
    /// Beginning of the measured time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// End of the measured time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Length of intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Length of windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Time of a value over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Smallest and largest size of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<[String; 2]>,
    /// Aggregate of several values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<String>,
    /// Baseline of the experiment that is measured instead of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Settings of the sweep that choose runs, as written in the experiment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, toml::Value>,
    /// Setting of the sweep of which each value gives one value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<String>,
    /// Positions of the values, `-` for a value that is left out; none is those that follow the values
    /// before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub x: Vec<String>,
}

/// Order or bound that a paper states, of values of the row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words of this project.
    pub words: String,
    /// Values that it is about: `SERIES/COLUMN`.
    pub of: Spanned<String>,
    /// Lower bound: a number in the row's unit, or other values.
    pub above: Option<Spanned<Bound>>,
    /// Upper bound.
    pub below: Option<Spanned<Bound>>,
    /// Distance from the bound that the values must keep, as a part of it: `"5%"`.
    #[serde(default)]
    pub margin: Margin,
    /// Positions that it is about; none is all.
    #[serde(default)]
    pub at: Vec<Spanned<String>>,
}

/// Bound of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number in the row's unit.
    Number(f64),
    /// Values: `SERIES/COLUMN`.
    Values(String),
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Bound, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Bound;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, or values as \"SERIES/COLUMN\"")
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Bound, E> {
                Ok(Bound::Number(v))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Bound, E> {
                Ok(Bound::Number(v as f64))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Bound, E> {
                Ok(Bound::Values(v.into()))
            }
        }
        d.deserialize_any(Any)
    }
}

/// Distance from a bound as a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Margin(pub f64);

impl<'de> Deserialize<'de> for Margin {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Margin, D::Error> {
        let text = String::deserialize(d)?;
        let part = percent(&text).map(Margin);
        part.ok_or_else(|| de::Error::custom(format!("`{text}` is not a percentage such as \"5%\"")))
    }
}

impl Row {
    /// Returns the number of positions on the horizontal axis.
    pub fn positions(&self) -> usize {
        self.x.len().max(1)
    }

    /// Returns the experiments that run for the row in virtual time, from the folder of the rows.
    pub fn files(&self) -> BTreeSet<&str> {
        let values = self.series.iter().flat_map(|s| s.as_published.iter().chain(&s.weir));
        let values = values.map(|m| m.get_ref().file.as_str());
        let others = self.checks.iter().chain(&self.shown_by).map(|f| f.get_ref().as_str());
        values.chain(others.filter(|f| f.ends_with(".toml"))).collect()
    }

    /// Returns the series and the column that a claim means by `SERIES/COLUMN`.
    pub fn values(&self, of: &str) -> Result<(usize, Column), Fault> {
        let form = || Fault::bare(format!("`{of}` is not SERIES/COLUMN"));
        let (name, column) = of.rsplit_once('/').ok_or_else(form)?;
        let names = || self.series.iter().map(|s| s.name.as_str());
        let series = names().position(|n| n == name).ok_or_else(|| unknown("series", name, names()))?;
        let column = Column::ALL.iter().find(|(n, _)| *n == column).map(|(_, c)| *c);
        let columns = || Column::ALL.iter().map(|(n, _)| *n);
        Ok((series, column.ok_or_else(|| unknown("column", of, columns()))?))
    }

    /// Returns the first fault that the parser of the file does not see, and its place.
    fn fault(&self) -> Option<(Range<usize>, Fault)> {
        let here = |fault: Fault| Some((self.id.span(), fault));
        if !self.minutes.is_finite() || self.minutes < 0.0 {
            return here(Fault::bare("`minutes` is not a time"));
        }
        if !(1..=1000).contains(&self.seeds) {
            return here(Fault::bare("`seeds` is not from 1 to 1000"));
        }
        for series in &self.series {
            let (found, wanted) = (series.published.len(), self.positions());
            if found != 0 && found != wanted {
                let help = "write \"-\" where the paper states none";
                let message =
                    format!("series `{}` has {found} published values for {wanted} positions", series.name);
                return here(Fault::new(message, help));
            }
        }
        let stated = self.series.iter().any(|s| s.published.iter().any(|p| *p != Published::Unstated));
        if stated && self.tolerance_from.is_empty() {
            return here(Fault::bare(
                "published values need a `tolerance`, and its source in `tolerance_from`",
            ));
        }
        if self.because.is_empty() != self.shown_by.is_empty() {
            return here(Fault::bare("`because` and `shown_by` need each other"));
        }
        let measured = self.series.iter().flat_map(|s| s.as_published.iter().chain(&s.weir));
        let strange = measured.flat_map(|m| m.get_ref().x.iter().map(move |x| (m.span(), x)));
        let mut strange = strange.filter(|(_, x)| *x != "-" && !self.x.contains(x));
        let strange = strange.next().map(|(span, x)| (span, self.no_position(x)));
        strange.or_else(|| self.says.iter().find_map(|claim| claim.fault(self)))
    }

    fn no_position(&self, x: &str) -> Fault {
        unknown("position", x, self.x.iter().map(String::as_str))
    }
}

impl Claim {
    fn fault(&self, row: &Row) -> Option<(Range<usize>, Fault)> {
        let values = |span: Range<usize>, of: &str| row.values(of).err().map(|fault| (span, fault));
        let bound = |b: &Spanned<Bound>| match b.get_ref() {
            Bound::Number(_) => None,
            Bound::Values(of) => values(b.span(), of),
        };
        if self.above.is_some() == self.below.is_some() {
            return Some((self.of.span(), Fault::bare("a claim needs `above` or `below`, and one of them")));
        }
        let strange = self.at.iter().find(|at| !row.x.contains(at.get_ref()));
        let strange = strange.map(|at| (at.span(), row.no_position(at.get_ref())));
        values(self.of.span(), self.of.get_ref())
            .or_else(|| self.above.iter().chain(&self.below).find_map(bound))
            .or(strange)
    }
}

/// Returns the fault of a name that is not among those known.
pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Fault {
    use crate::experiment::config::diag::{listed, nearest};
    let guess = nearest(name, known.clone()).map(|n| format!("did you mean `{n}`? "));
    let help = format!("{}there is {}", guess.unwrap_or_default(), listed(known));
    Fault::new(format!("no {what} is named `{name}`"), help)
}

/// Reads the rows of the paper in a folder.
pub fn read(folder: &Path) -> Result<Paper, Errors> {
    let path = folder.join(FILE);
    let source = Source::read(&path)
        .map_err(|e| Errors::of(&Source::new(path.display().to_string(), ""), Fault::bare(e)))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    parse(&name, folder, source)
}

/// Parses the rows of a paper.
pub fn parse(name: &str, folder: &Path, source: Source) -> Result<Paper, Errors> {
    let written: Written = toml::from_str(&source.text).map_err(|e| {
        let message = e.message().trim_end().replace('\n', "; ");
        Errors::at(&source, e.span().unwrap_or(0..0), Fault::bare(message))
    })?;
    let mut seen = BTreeSet::new();
    for row in &written.row {
        let twice = (!seen.insert(row.id.get_ref()))
            .then(|| (row.id.span(), Fault::bare(format!("row `{}` is there twice", row.id.get_ref()))));
        if let Some((span, fault)) = twice.or_else(|| row.fault()) {
            return Err(Errors::at(&source, span, fault));
        }
    }
    let Written { paper: about, row: rows } = written;
    Ok(Paper { name: name.into(), about, rows, folder: folder.into(), source })
}

/// Returns the papers in a folder, each in a folder of its own with rows, by name.
pub fn all(folder: &Path) -> Result<Vec<Paper>, Errors> {
    let unreadable = |e: std::io::Error| {
        let help = "run it in the repository, or name the folder with the papers: --papers DIR";
        Errors::of(&Source::new(folder.display().to_string(), ""), Fault::new(e.to_string(), help))
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.join(FILE).is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    folders.iter().map(|f| read(f)).collect()
}

#[cfg(test)]
mod tests;
