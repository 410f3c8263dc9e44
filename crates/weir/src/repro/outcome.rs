//! Rows with their values and verdicts.

use super::asks::{Experiment, Given};
use super::judge::{self, short, Better, Parts, Side, Verdict};
use super::rows::{Bound, Claim, Column, Measured, Paper, Published, Row, Series};
use super::work::Made;
use crate::experiment::config::diag::{Errors, Fault};
use crate::result::unit::Unit;
use crate::result::Backend;
use serde::Serialize;
use std::collections::BTreeSet;
use toml::Spanned;

/// Schema that is written here.
pub const SCHEMA: u32 = 1;

/// All papers.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Version of Weir, and the hash of the program.
    pub version: String,
    /// Kind of machine, without its name.
    pub machine: String,
    /// Worlds that ran.
    pub worlds: Vec<Backend>,
    /// Papers in the order of their names.
    pub papers: Vec<PaperOutcome>,
}

/// A paper.
#[derive(Debug, Serialize)]
pub struct PaperOutcome {
    /// Name on the command line.
    pub name: String,
    /// Title.
    pub title: String,
    /// Authors and year.
    pub by: String,
    /// Rows: those that differ first, then those that cannot be had here, then all others.
    pub rows: Vec<RowOutcome>,
}

/// A row.
#[derive(Debug, Serialize)]
pub struct RowOutcome {
    /// Name on the command line.
    pub id: String,
    /// Figures and tables that it is about.
    pub covers: Vec<String>,
    /// Headline.
    pub title: String,
    /// The paper's claim.
    pub claim: String,
    /// Command that makes it again.
    pub command: String,
    /// Minutes that it was expected to take.
    pub minutes: f64,
    /// Seconds that its runs took, all together.
    pub seconds: f64,
    /// Seeds of its runs.
    pub seeds: Vec<u64>,
    /// Experiments in virtual time, and in the lab.
    pub experiments: Vec<ExperimentOutcome>,
    /// Unit of the values.
    pub unit: String,
    /// Name of the horizontal axis.
    pub across: String,
    /// Names of the positions.
    pub x: Vec<String>,
    /// Allowed distance from published values.
    pub tolerance: String,
    /// Source of the tolerance.
    pub tolerance_from: String,
    /// Values by scheme.
    pub series: Vec<SeriesOutcome>,
    /// Orders and bounds that the paper states.
    pub says: Vec<ClaimOutcome>,
    /// Verdict.
    pub verdict: Verdict,
    /// Reason of a verdict that needs one.
    pub because: String,
    /// Experiments that show the reason.
    pub shown_by: Vec<String>,
    /// Differences in words.
    pub differences: Vec<String>,
    /// Flag: the verdict needs a reason, and there is none.
    pub unexplained: bool,
    /// Flag: there is a reason, and the verdict needs none.
    pub needless_reason: bool,
}

/// Experiment of a row.
#[derive(Debug, Serialize)]
pub struct ExperimentOutcome {
    /// File.
    pub file: String,
    /// World.
    pub world: Backend,
    /// Number of runs.
    pub runs: usize,
    /// Number of checks that hold, in all runs.
    pub held: usize,
    /// Checks that do not hold, and faults.
    pub failed: Vec<String>,
    /// Flag: inconclusive, because the machine was overloaded during this run.
    pub inconclusive: bool,
}

/// Values of a scheme.
#[derive(Debug, Serialize)]
pub struct SeriesOutcome {
    /// Name.
    pub name: String,
    /// Ranges that the paper states.
    pub published: Vec<Option<[f64; 2]>>,
    /// The paper's scheme in this project's worlds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_published: Option<ColumnOutcome>,
    /// Weir's own scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weir: Option<ColumnOutcome>,
}

/// Measured values of a scheme.
#[derive(Debug, Serialize)]
pub struct ColumnOutcome {
    /// Values in virtual time.
    pub values: Vec<Option<Spread>>,
    /// Values with the real Linux TCP, of files that the row runs in the lab; empty if none ran. A value is
    /// unknown if a flow had not ended in one of the runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lab: Vec<Option<Spread>>,
    /// Distances from published values, as parts of them.
    pub deviation: Vec<Option<f64>>,
    /// Verdict beside the published values, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Mean of several runs, with their smallest and largest value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest.
    pub low: f64,
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub high: f64,
}

/// Claim with its outcome.
#[derive(Debug, Serialize)]
pub struct ClaimOutcome {
    /// The claim.
    pub words: String,
    /// Values that decide, in words.
    pub found: String,
    /// Flag: it holds.
    pub holds: bool,
}

/// Results of a world.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Experiments.
    pub experiments: &'a [Experiment],
    /// Results of their runs.
    pub made: &'a Made,
}

/// Judges all rows.
pub fn report(papers: &[Paper], worlds: &[World], version: &str) -> Result<Report, Errors> {
    let one = |paper: &Paper| {
        let rows: Result<Vec<_>, _> =
            paper.rows.iter().map(|r| RowJudge { paper, row: r, worlds }.judge()).collect();
        let mut rows = rows?;
        rows.sort_by_key(|r| r.verdict.min(Verdict::Agrees));
        let about = &paper.about;
        let by = format!("{}, {}", about.authors, about.year);
        Ok(PaperOutcome { name: paper.name.clone(), title: about.title.clone(), by, rows })
    };
    let mut ran: BTreeSet<Backend> = BTreeSet::new();
    ran.extend(worlds.iter().flat_map(|w| w.experiments).map(|e| e.world));
    Ok(Report {
        schema: SCHEMA,
        version: version.into(),
        machine: machine(),
        worlds: ran.into_iter().collect(),
        papers: papers.iter().map(one).collect::<Result<_, Errors>>()?,
    })
}

/// Describes the machine without naming it.
fn machine() -> String {
    let (processors, os, arch) =
        (crate::execute::sweep::processors(), std::env::consts::OS, std::env::consts::ARCH);
    format!("{processors} processors, {os} on {arch}")
}

/// A row being judged.
struct RowJudge<'a> {
    paper: &'a Paper,
    row: &'a Row,
    worlds: &'a [World<'a>],
}

impl RowJudge<'_> {
    fn judge(&self) -> Result<RowOutcome, Errors> {
        let row = self.row;
        let series: Vec<SeriesOutcome> =
            row.series.iter().map(|s| self.series(s)).collect::<Result<_, _>>()?;
        let says: Vec<ClaimOutcome> = row.says.iter().map(|c| claim(row, c, &series)).collect();
        let experiments = self.experiments();
        let parts = parts(row, &series, &says, &experiments);
        let verdict = judge::row(&parts);
        let unexplained = verdict.needs_reason() && row.because.is_empty();
        Ok(RowOutcome {
            id: row.id.get_ref().clone(),
            covers: row.covers.clone(),
            title: row.title.clone(),
            claim: row.claim.clone(),
            command: format!("weir repro {} {}", self.paper.name, row.id.get_ref()),
            minutes: row.minutes,
            seconds: self.given().map(|g| g.wall_s).sum(),
            seeds: self.given().map(|g| g.seed).collect::<BTreeSet<u64>>().into_iter().collect(),
            unit: row.unit.clone(),
            across: row.across.clone(),
            x: row.x.clone(),
            tolerance: if row.tolerance_from.is_empty() { String::new() } else { self.tolerance() },
            tolerance_from: row.tolerance_from.clone(),
            differences: differences(row, &series, &says, &experiments),
            series,
            says,
            experiments,
            verdict,
            because: row.because.clone(),
            shown_by: row.shown_by.iter().map(|f| f.get_ref().clone()).collect(),
            unexplained,
            needless_reason: !verdict.needs_reason() && !row.because.is_empty(),
        })
    }

    fn tolerance(&self) -> String {
        match self.row.tolerance {
            judge::Tolerance::Distance(_) => {
                format!("{} {}", self.row.tolerance, self.row.unit).trim().into()
            }
            judge::Tolerance::Part(_) => self.row.tolerance.to_string(),
        }
    }

    /// Returns the experiments of the row with their results.
    fn own(&self) -> impl Iterator<Item = (&Experiment, &Vec<Option<Given>>)> {
        let all = self.worlds.iter().flat_map(|w| w.experiments.iter().zip(w.made));
        all.filter(|(e, _)| {
            let files: Vec<&str> = match e.world {
                Backend::Sim => self.row.files().into_iter().collect(),
                Backend::Lab => self.row.lab.iter().map(|f| f.get_ref().as_str()).collect(),
            };
            files.iter().any(|f| self.paper.folder.join(f) == e.path)
        })
    }

    fn given(&self) -> impl Iterator<Item = &Given> {
        self.own().flat_map(|(_, made)| made).flatten()
    }

    fn experiments(&self) -> Vec<ExperimentOutcome> {
        let one = |(e, made): (&Experiment, &Vec<Option<Given>>)| {
            let given = || made.iter().flatten();
            let failed = given().flat_map(|g| {
                let at = match (made.len(), settings(g)) {
                    (1, _) => String::new(),
                    (_, s) => format!(" (seed {}{s})", g.seed),
                };
                let checks = g.checks.iter().filter(|c| !c.ok).map(|c| c.what.clone());
                checks.chain(g.faults.iter().cloned()).map(move |text| format!("{text}{at}"))
            });
            let failed: Vec<String> = failed.collect();
            ExperimentOutcome {
                file: e.path.display().to_string(),
                world: e.world,
                runs: made.len(),
                held: given().map(|g| g.checks.iter().filter(|c| c.ok).count()).sum(),
                inconclusive: !failed.is_empty() && given().any(|g| g.starved),
                failed,
            }
        };
        self.own().map(one).collect()
    }

    fn series(&self, series: &Series) -> Result<SeriesOutcome, Errors> {
        let none = || vec![None; self.row.positions()];
        let published: Vec<Option<[f64; 2]>> = match series.published.is_empty() {
            true => none(),
            false => series.published.iter().map(band).collect(),
        };
        let column = |asked: &[Spanned<Measured>]| {
            if asked.is_empty() {
                return Ok(None);
            }
            let values = self.values(asked, Backend::Sim)?;
            let in_the_lab = asked.iter().any(|m| self.ran(m.get_ref(), Backend::Lab).is_some());
            let lab = if in_the_lab { self.values(asked, Backend::Lab)? } else { Vec::new() };
            let pairs = || values.iter().zip(&published);
            let deviation = pairs().map(|(v, p)| judge::deviation(v.as_ref()?.mean, pair((*p)?))).collect();
            let sides = pairs().filter_map(|(v, p)| Some(self.side(v.as_ref(), pair((*p)?))));
            let sides: Vec<Side> = sides.collect();
            let verdict = (!sides.is_empty()).then(|| judge::column(sides));
            Ok(Some(ColumnOutcome { values, lab, deviation, verdict }))
        };
        Ok(SeriesOutcome {
            name: series.name.clone(),
            as_published: column(&series.as_published)?,
            weir: column(&series.weir)?,
            published,
        })
    }

    fn side(&self, value: Option<&Spread>, published: (f64, f64)) -> Side {
        judge::side(value.map_or(f64::NAN, |v| v.mean), published, self.row.tolerance, self.row.better)
    }

    /// Returns the values of a column in a world, one for each position of the row.
    fn values(&self, asked: &[Spanned<Measured>], world: Backend) -> Result<Vec<Option<Spread>>, Errors> {
        let positions = self.row.positions();
        let mut values = vec![None; positions];
        let mut next = 0;
        for measured in asked {
            let fault = |fault| Errors::at(&self.paper.source, measured.span(), fault);
            let found = self.measured(measured.get_ref(), world).map_err(fault)?;
            let places: Vec<Option<usize>> = match measured.get_ref().x.as_slice() {
                [] => (next..next + found.len()).map(Some).collect(),
                names => names.iter().map(|x| self.row.x.iter().position(|known| known == x)).collect(),
            };
            if places.len() != found.len() || places.iter().flatten().any(|p| *p >= positions) {
                let message = format!("{} values for {} of {positions} positions", found.len(), places.len());
                return Err(fault(Fault::bare(message)));
            }
            next = places.iter().flatten().last().map_or(next, |p| p + 1);
            for (place, value) in places.into_iter().zip(found) {
                if let Some(place) = place {
                    values[place] = value;
                }
            }
        }
        Ok(values)
    }

    /// Returns the experiment of a measure in a world with its results, if the row has it there.
    fn ran(&self, measured: &Measured, world: Backend) -> Option<(&Experiment, &Vec<Option<Given>>)> {
        let path = self.paper.folder.join(&measured.file);
        self.own().find(|(e, _)| e.path == path && e.world == world)
    }

    /// Returns the values of a measure in a world. What did not run in the lab has as many places as in
    /// virtual time.
    fn measured(&self, measured: &Measured, world: Backend) -> Result<Vec<Option<Spread>>, Fault> {
        match (self.ran(measured, world), world) {
            (Some(ran), _) => self.measured_in(ran, measured),
            (None, Backend::Sim) => Err(Fault::bare("the experiment did not run")),
            (None, Backend::Lab) => Ok(vec![None; self.measured(measured, Backend::Sim)?.len()]),
        }
    }

    /// Returns the values of a measure in the row's unit, each of all its runs.
    fn measured_in(
        &self,
        (experiment, made): (&Experiment, &Vec<Option<Given>>),
        measured: &Measured,
    ) -> Result<Vec<Option<Spread>>, Fault> {
        let metric = experiment.unit(measured).unwrap_or(Unit::Count);
        let factor = factor(metric, &self.row.unit).ok_or_else(|| {
            Fault::bare(format!("`{}` is not in `{}`, the unit of the row", measured.what, self.row.unit))
        })?;
        let key = super::asks::key(measured);
        let mut all = Vec::new();
        for runs in experiment.chosen(measured)? {
            let of_run =
                |n: &usize| made[*n].as_ref().and_then(|g| g.values.get(&key)).map_or(&[][..], Vec::as_slice);
            let lists: Vec<_> = runs.iter().map(of_run).collect();
            let count = lists.iter().map(|l| l.len()).max().unwrap_or(0);
            let one = measured.sweep.is_some();
            if one && count > 1 {
                let message =
                    format!("{count} values of one run, and a sweep wants one: give an `aggregate`");
                return Err(Fault::bare(message));
            }
            // A run that measured nothing has its place all the same.
            let count = if one { 1 } else { count.max(measured.x.len()).max(1) };
            for i in 0..count {
                let values = lists.iter().map(|l| l.get(i).filter(|v| !v.at_least).map(|v| v.value * factor));
                all.push(values.collect::<Option<Vec<f64>>>().as_deref().and_then(spread));
            }
        }
        Ok(all)
    }
}

fn pair([low, high]: [f64; 2]) -> (f64, f64) {
    (low, high)
}

fn band(published: &Published) -> Option<[f64; 2]> {
    match published {
        Published::Band(low, high) => Some([*low, *high]),
        Published::Unstated => None,
    }
}

fn settings(given: &Given) -> String {
    given.settings.iter().map(|(k, v)| format!(", {k} = {v}")).collect()
}

/// Returns the mean of values with their range; `None` without values.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some(Spread { low, mean: values.iter().sum::<f64>() / values.len() as f64, high })
}

/// Returns the factor from a metric's unit to a row's; `None` if the row's is not a unit of the metric.
pub fn factor(metric: Unit, unit: &str) -> Option<f64> {
    let known: &[(&str, f64)] = match metric {
        Unit::Rate => {
            &[("bit/s", 1.0), ("kbit/s", 1e-3), ("Mbit/s", 1e-6), ("Gbit/s", 1e-9), ("kB/s", 1.0 / 8e3)]
        }
        Unit::Micros => &[("us", 1.0), ("ms", 1e-3), ("s", 1e-6)],
        Unit::Seconds => &[("ms", 1e3), ("s", 1.0)],
        Unit::Bytes => &[("bytes", 1.0), ("kB", 1e-3), ("MB", 1e-6)],
        Unit::Share | Unit::Deviation => &[("%", 100.0), ("", 1.0)],
        // Packets, losses, segments: a count is a count.
        Unit::Count => return Some(1.0),
    };
    known.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn columns(series: &SeriesOutcome) -> impl Iterator<Item = (Column, &ColumnOutcome)> {
    let both = [(Column::AsPublished, &series.as_published), (Column::Weir, &series.weir)];
    both.into_iter().filter_map(|(name, column)| Some((name, column.as_ref()?)))
}

fn parts(
    row: &Row,
    series: &[SeriesOutcome],
    says: &[ClaimOutcome],
    experiments: &[ExperimentOutcome],
) -> Parts {
    let mut parts = Parts::default();
    for s in series {
        parts.as_published.extend(s.as_published.iter().filter_map(|c| c.verdict));
        parts.weir.extend(s.weir.iter().filter_map(|c| c.verdict));
        parts.weir.extend(verdict_beside(row, s));
        parts.missing |= columns(s).any(|(_, c)| c.values.iter().all(Option::is_none));
    }
    parts.holds.extend(says.iter().map(|c| c.holds));
    let conclusive = experiments.iter().filter(|e| !e.inconclusive);
    // A row for which nothing of its own runs has only the experiments that show why.
    let own = !row.series.is_empty() || !row.checks.is_empty() || !row.lab.is_empty();
    let holds = conclusive.filter(|e| own || !e.failed.is_empty()).map(|e| e.failed.is_empty());
    parts.holds.extend(holds);
    parts
}

/// Weir's scheme beside the paper's scheme here, at one position.
struct Beside {
    at: usize,
    side: Side,
    /// Value of Weir's scheme.
    value: f64,
    /// Distance from the paper's scheme, as a part of its value; `None` beside a 0.
    off: Option<f64>,
}

/// Returns Weir's scheme beside the paper's scheme here, on the paper's metric, where both have a value.
fn beside_the_paper_s(row: &Row, series: &SeriesOutcome) -> Vec<Beside> {
    let (Some(weir), Some(paper)) = (&series.weir, &series.as_published) else { return Vec::new() };
    let pairs = weir.values.iter().zip(&paper.values).enumerate();
    let beside = pairs.filter_map(|(at, (w, p))| {
        let (w, p) = (w.as_ref()?.mean, p.as_ref()?.mean);
        let side = judge::side(w, (p, p), row.tolerance, row.better);
        Some(Beside { at, side, value: w, off: judge::deviation(w, (p, p)) })
    });
    beside.filter(|_| row.better != Better::Neither).collect()
}

/// Returns the verdict on Weir's scheme beside the paper's.
fn verdict_beside(row: &Row, series: &SeriesOutcome) -> Option<Verdict> {
    let sides: Vec<Side> = beside_the_paper_s(row, series).iter().map(|b| b.side).collect();
    (!sides.is_empty()).then(|| judge::column(sides))
}

/// Says where Weir's scheme is worse than the paper's, and by how much.
fn worse_places(row: &Row, series: &SeriesOutcome) -> Option<String> {
    let worse = beside_the_paper_s(row, series).into_iter().filter(|b| b.side == Side::Worse);
    let places: Vec<String> = worse
        .map(|b| {
            let at = row.x.get(b.at).map_or(String::new(), |x| format!(" at {x}"));
            b.off.map_or(short(b.value), |off| format!("{:+.1} %", off * 100.0)) + &at
        })
        .collect();
    let said =
        || format!("{}: Weir's scheme is worse than the paper's here, {}", series.name, places.join(", "));
    (!places.is_empty()).then(said)
}

/// Judges a claim.
fn claim(row: &Row, claim: &Claim, series: &[SeriesOutcome]) -> ClaimOutcome {
    let value = |of: &str, i: usize| -> Option<f64> {
        let (n, column) = row.values(of).ok()?;
        let mean = |c: &Option<ColumnOutcome>| c.as_ref()?.values.get(i)?.as_ref().map(|v| v.mean);
        match column {
            Column::Published => series[n].published.get(i)?.map(|[low, high]| (low + high) / 2.0),
            Column::AsPublished => mean(&series[n].as_published),
            Column::Weir => mean(&series[n].weir),
        }
    };
    let bound = |b: &Bound, i: usize| match b {
        Bound::Number(n) => Some(*n),
        Bound::Values(of) => value(of, i),
    };
    let (against, sign) = match (&claim.above, &claim.below) {
        (Some(above), _) => (above.get_ref(), 1.0),
        (None, Some(below)) => (below.get_ref(), -1.0),
        (None, None) => (&Bound::Number(f64::NAN), 1.0),
    };
    // The position with the least room decides.
    let mut worst: Option<(f64, usize, f64, f64)> = None;
    let mut unknown = false;
    for i in 0..row.positions() {
        let named = claim.at.is_empty() || claim.at.iter().any(|at| Some(at.get_ref()) == row.x.get(i));
        if !named {
            continue;
        }
        let (Some(found), Some(limit)) = (value(claim.of.get_ref(), i), bound(against, i)) else {
            unknown |= !claim.at.is_empty();
            continue;
        };
        let limit = limit + sign * claim.margin.0 * limit.abs();
        let room = sign * (found - limit);
        if worst.is_none_or(|(least, ..)| room < least) {
            worst = Some((room, i, found, limit));
        }
    }
    let found = worst.map_or("not measured".to_string(), |(_, i, found, limit)| {
        let at = row.x.get(i).map_or(String::new(), |x| format!(" at {x}"));
        let bound = if sign > 0.0 { "at least" } else { "at most" };
        format!("{}{at}, {bound} {} {}", short(found), short(limit), row.unit).trim_end().to_string()
    });
    let holds = !unknown && worst.is_some_and(|(room, ..)| room >= 0.0);
    ClaimOutcome { words: claim.words.clone(), found, holds }
}

/// Says what differs.
fn differences(
    row: &Row,
    series: &[SeriesOutcome],
    says: &[ClaimOutcome],
    experiments: &[ExperimentOutcome],
) -> Vec<String> {
    let mut out = Vec::new();
    for s in series {
        for (name, column) in columns(s) {
            let better = name == Column::Weir && column.verdict == Some(Verdict::Better);
            if column.values.iter().all(Option::is_none) {
                out.push(format!("{}, {}: not measured", s.name, name.words()));
            } else if column.verdict.is_some_and(|v| v != Verdict::Agrees) && !better {
                out.push(format!("{}, {}: {}", s.name, name.words(), furthest(row, s, column)));
            }
        }
        out.extend(worse_places(row, s));
    }
    out.extend(says.iter().filter(|c| !c.holds).map(|c| format!("does not hold: {}", c.words)));
    for e in experiments.iter().filter(|e| !e.failed.is_empty() && !e.inconclusive) {
        out.push(format!("{}: {} checks fail", e.file, e.failed.len()));
    }
    out
}

/// Describes the value of a column that is the furthest from what is published.
fn furthest(row: &Row, series: &SeriesOutcome, column: &ColumnOutcome) -> String {
    let far = |i: &usize| {
        let (value, published) = (column.values[*i].as_ref().map(|v| v.mean), series.published[*i]);
        value.zip(published).map_or(0.0, |(v, [low, high])| {
            let near = v.clamp(low, high);
            (v - near).abs() / row.tolerance.around(near).max(near.abs() * 1e-3).max(1e-9)
        })
    };
    let worst = (0..column.values.len()).max_by(|a, b| far(a).total_cmp(&far(b)));
    let text = worst.and_then(|i| {
        let (value, [low, high]) = (column.values[i].as_ref()?.mean, series.published[i]?);
        let at = row.x.get(i).map_or(String::new(), |x| format!(" at {x}"));
        let published = if low == high { short(low) } else { format!("{} to {}", short(low), short(high)) };
        Some(format!("{} {}{at}, published {published}", short(value), row.unit))
    });
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests;
