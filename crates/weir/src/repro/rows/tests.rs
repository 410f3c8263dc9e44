use super::*;
use std::collections::BTreeMap;

const PAPER: &str = "[paper]\ntitle = \"T\"\nauthors = \"A\"\nyear = 2000\n";
const ROW: &str =
    "[[row]]\nid = \"fig1\"\ncovers = [\"fig. 1\"]\ntitle = \"t\"\nclaim = \"c\"\nminutes = 1\n";

fn read_text(text: &str) -> Result<Paper, String> {
    let source = Source::new("rows.toml", text);
    parse("p", Path::new("p"), source).map_err(|e| e.to_string())
}

#[test]
fn errors_say_where_and_what_is_right() {
    let with = |more: &str| format!("{PAPER}{ROW}{more}");
    let series = "[[row.series]]\nname = \"s\"\n";
    for (text, place, words) in [
        (with("minute = 2\n"), "rows.toml:11:1", "unknown field `minute`"),
        (with("better = \"more\"\n"), "rows.toml:11:10", "unknown variant `more`"),
        (with("tolerance = \"10\"\n"), "rows.toml:11:13", "a percentage such as \"10%\""),
        (with("because = \"b\"\n"), "rows.toml:6:6", "`because` and `shown_by` need each other"),
        (with(ROW), "rows.toml:12:6", "row `fig1` is there twice"),
        (
            with(&format!("{series}published = [2, 3]\n")),
            "rows.toml:6:6",
            "2 published values for 1 positions",
        ),
        (with(&format!("{series}published = [2]\n")), "rows.toml:6:6", "need a `tolerance`"),
        (with(&format!("{series}published = [[3, 2]]\n")), "rows.toml:13:14", "3 is above 2"),
        (
            with(&format!("{series}[[row.says]]\nwords = \"w\"\nof = \"z/weir\"\nabove = 1\n")),
            "rows.toml:15:6",
            "no series is named `z`",
        ),
        (
            with(&format!("{series}[[row.says]]\nwords = \"w\"\nof = \"s/weird\"\nabove = 1\n")),
            "rows.toml:15:6",
            "there is `published`, `as_published` and `weir`",
        ),
        (
            with(&format!("{series}[[row.says]]\nwords = \"w\"\nof = \"s/weir\"\n")),
            "rows.toml:15:6",
            "a claim needs `above` or `below`",
        ),
    ] {
        let error = read_text(&text).unwrap_err();
        assert!(error.starts_with(place) && error.contains(words), "{place} {words}\n{error}");
    }
}

#[test]
fn an_unknown_paper_or_row_names_those_that_exist() {
    let papers = || vec![read_text(&format!("{PAPER}{ROW}")).unwrap()];
    let choose = |p, r| super::super::choose::choose(papers(), p, r).map(|p| p.len());
    assert_eq!(choose(None, None), Ok(1));
    assert_eq!(choose(Some("p"), Some("fig1")), Ok(1));
    let error = |p, r| choose(p, r).unwrap_err().to_string();
    assert_eq!(error(Some("q"), None), "no paper is named `q`: did you mean `p`? there is `p`");
    let row = error(Some("p"), Some("fig11"));
    assert_eq!(row, "no row of `p` is named `fig11`: did you mean `fig1`? there is `fig1`");
}

/// Papers of the repository.
fn papers() -> Vec<Paper> {
    all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/papers"))
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Numbers after a word: "figs. 4 and 5" has 4 and 5, "figs. 8 to 10" has all from 8 to 10.
fn numbers(text: &str, word: &str) -> Vec<u32> {
    let Some((_, rest)) = text.split_once(word) else { return Vec::new() };
    let rest = rest.trim_start_matches(['s', '.', ' ']);
    let rest = rest.split([':', ',']).next().unwrap_or("");
    let words: Vec<&str> = rest.split(' ').collect();
    let number = |w: &str| w.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    match words.as_slice() {
        [from, "to", to, ..] => (number(from).unwrap()..=number(to).unwrap()).collect(),
        [one, "and", other, ..] => vec![number(one).unwrap(), number(other).unwrap()],
        [one, ..] => number(one).into_iter().collect(),
        [] => Vec::new(),
    }
}

/// Figures and tables with a caption or a mention in the texts of the papers. Captions of figures 4 to 7 of
/// the gap pacer's paper are not in its text.
#[test]
fn every_figure_and_table_has_a_row() {
    let all = |n: u32| (1..=n).collect::<Vec<u32>>();
    let printed: BTreeMap<&str, (Vec<u32>, Vec<u32>)> = [
        ("ack-filter", (all(12), vec![])),
        ("ack-shaper", (all(12), vec![])),
        ("gap-pacer", (vec![1, 2, 3, 8, 9], all(5))),
        ("paced-chirping", (all(7), vec![])),
        ("postack", (all(16), all(2))),
    ]
    .into();
    let papers = papers();
    assert_eq!(
        papers.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
        printed.keys().copied().collect::<Vec<_>>()
    );
    for paper in &papers {
        let covered = |word: &str| -> BTreeSet<u32> {
            paper.rows.iter().flat_map(|r| &r.covers).flat_map(|c| numbers(c, word)).collect()
        };
        let (figures, tables) = &printed[paper.name.as_str()];
        for (word, wanted) in [("fig", figures), ("table", tables)] {
            let covered = covered(word);
            let missing: Vec<&u32> = wanted.iter().filter(|n| !covered.contains(n)).collect();
            assert!(missing.is_empty(), "{}: no row for {word}. {missing:?}", paper.name);
        }
    }
    assert_eq!(numbers("figs. 8 to 10: averages", "fig"), [8, 9, 10]);
    assert_eq!(numbers("fig. 8a", "fig"), [8]);
}

/// Each file that a row names is there, and has what rows ask of it.
#[test]
fn rows_name_files_and_measures_that_exist() {
    use super::super::asks::experiments;
    use crate::result::Backend;
    let papers = papers();
    let sim = experiments(&papers, &papers, Backend::Sim).unwrap_or_else(|e| panic!("{e}"));
    for paper in &papers {
        for row in &paper.rows {
            for measured in row.series.iter().flat_map(|s| s.as_published.iter().chain(&s.weir)) {
                let path = paper.folder.join(&measured.get_ref().file);
                let experiment = sim.iter().find(|e| e.path == path).unwrap();
                let chosen = experiment.chosen(measured.get_ref());
                chosen.unwrap_or_else(|e| panic!("{} {}: {e}", paper.name, row.id.get_ref()));
            }
        }
    }
    #[cfg(feature = "linux")]
    experiments(&papers, &papers, Backend::Lab).unwrap_or_else(|e| panic!("{e}"));
}
