use super::super::judge::Verdict;
use super::super::outcome::{ClaimOutcome, ExperimentOutcome};
use super::*;
use crate::result::Backend;

/// A row whose every text is `text`.
fn row(text: &str) -> RowOutcome {
    let s = || text.to_string();
    let value = Spread { low: 1.0, mean: 2.0, high: 3.0 };
    let column = || ColumnOutcome {
        values: vec![Some(value)],
        lab: Vec::new(),
        deviation: vec![Some(0.5)],
        verdict: None,
    };
    let series = |name: String| SeriesOutcome {
        name,
        published: vec![Some([1.0, 4.0])],
        as_published: Some(column()),
        weir: Some(column()),
    };
    RowOutcome {
        id: s(),
        covers: vec![s()],
        title: s(),
        claim: s(),
        command: s(),
        minutes: 1.0,
        seconds: 2.0,
        seeds: vec![1],
        experiments: vec![ExperimentOutcome {
            file: s(),
            world: Backend::Sim,
            runs: 1,
            held: 1,
            failed: vec![s()],
            inconclusive: false,
        }],
        unit: s(),
        across: s(),
        x: vec![s()],
        tolerance: s(),
        tolerance_from: s(),
        series: vec![series(s()), series(s())],
        says: vec![ClaimOutcome { words: s(), found: s(), holds: true }],
        verdict: Verdict::Differs,
        because: s(),
        shown_by: vec![s()],
        differences: vec![s()],
        unexplained: false,
        needless_reason: true,
    }
}

fn report(rows: Vec<RowOutcome>, text: &str) -> Report {
    let paper = PaperOutcome { name: text.into(), title: text.into(), by: text.into(), rows };
    Report {
        schema: 1,
        version: text.into(),
        machine: text.into(),
        worlds: vec![Backend::Sim],
        papers: vec![paper],
    }
}

#[test]
fn names_from_files_are_text() {
    let evil = "<script>alert('x')</script>&\"><img src=x onerror=y>";
    let html = page(&report(vec![row(evil)], evil)).unwrap();
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("'x'"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;&gt;"));
    // Each tag that is opened is one of the page's own.
    let known = [
        "a", "article", "body", "br", "circle", "code", "dd", "div", "dl", "dt", "em", "figure", "h1", "h2",
        "h3", "head", "header", "html", "line", "li", "meta", "p", "polygon", "polyline", "rect", "section",
        "span", "strong", "style", "svg", "table", "td", "text", "th", "title", "tr", "ul",
    ];
    for tag in html.split('<').skip(1).map(|t| t.trim_start_matches('/')) {
        let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(known.contains(&name.as_str()) || tag.starts_with('!'), "<{tag}");
    }
}

#[test]
fn values_of_the_lab_stand_beside_those_of_virtual_time() {
    let mut shown = row("plain");
    let without = page(&report(vec![row("plain")], "paper")).unwrap();
    assert!(!without.contains(", Linux</th>"));
    let lab = Spread { low: 1.1, mean: 1.25, high: 1.4 };
    shown.series[1].weir.as_mut().unwrap().lab = vec![Some(lab)];
    let html = page(&report(vec![shown], "paper")).unwrap();
    assert_eq!(html.matches("<th>Weir, Linux</th>").count(), 1);
    assert!(!html.contains("as published, Linux"));
    // The other scheme of the row has no value there.
    assert_eq!(html.matches("<td>1.25 (1.1 to 1.4)</td>").count(), 1);
    assert!(!html.contains("<td>not known</td>"));
    let triangles = |html: &str| html.matches("<polygon").count();
    assert_eq!(triangles(&html), triangles(&without) + 1);
    // A flow had not ended in the lab.
    let mut unknown = row("plain");
    unknown.series[1].weir.as_mut().unwrap().lab = vec![None];
    let html = page(&report(vec![unknown], "paper")).unwrap();
    assert_eq!((html.matches("<td>not known</td>").count(), triangles(&html)), (1, triangles(&without)));
}

#[test]
fn a_page_needs_nothing_else_and_shows_what_differs_first() {
    let agrees = RowOutcome { id: "second".into(), verdict: Verdict::Agrees, ..row("plain") };
    let html = page(&report(vec![row("first"), agrees], "paper")).unwrap();
    assert!(!html.contains("<link") && !html.contains("url(") && !html.contains("@import"));
    assert!(!html.replace("http://www.w3.org/2000/svg", "").contains("http"));
    let (list, all) = (html.find("What is not as published").unwrap(), html.find("All rows").unwrap());
    assert!(html[list..all].contains("#paper-first") && !html[list..all].contains("#paper-second"));
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
    assert_eq!(html.matches("<svg").count(), 2);
}
