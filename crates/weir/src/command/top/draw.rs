//! The screen of `weir top`.

use super::state::{Column, Row, State, View};
use crate::report::table::load::{percent, short};
use crate::report::table::{cut, mbit};
use crate::result::traffic::Load;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use ratatui::Frame;

/// Widths of the columns behind the name: four rates, a share, packets and flows.
const RATE: usize = 8;
const OTHER: usize = 7;
const DROPPED: usize = 9;
const FLOWS: usize = 7;
const NUMBERS: usize = 4 * RATE + OTHER + DROPPED + FLOWS;
/// Columns of a name, beside what is left of a line for the name for people.
const NAME: usize = 17;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let details = if state.details { 9 } else { 0 };
    let parts = [1, 1, 1].map(Constraint::Length).into_iter();
    let parts = parts.chain([Constraint::Min(0), Constraint::Length(details), Constraint::Length(1)]);
    let areas = Layout::vertical(parts).split(frame.area());
    frame.render_widget(Paragraph::new(said(state)), areas[0]);
    frame.render_widget(Paragraph::new(views(state)), areas[1]);
    let width = usize::from(areas[2].width);
    frame.render_widget(Paragraph::new(head(state, width)), areas[2]);
    rows(frame, areas[3], state);
    if state.details {
        self::details(frame, areas[4], state);
    }
    frame.render_widget(Paragraph::new(foot(state)), areas[5]);
}

/// State of the gateway, or why it does not answer.
fn said(state: &State) -> Line<'static> {
    let bad = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let report = &state.report;
    match (&state.failure, &report.degraded) {
        (Some(why), _) => Line::styled(format!("no answer: {}", cut(why, 200)), bad),
        (None, Some(why)) => Line::styled(format!("DEGRADED: {}", cut(why, 200)), bad),
        (None, None) => Line::from(format!(
            "weir runs for {:.0} s; {} restarts{}{}",
            report.wall_s,
            report.steering.restarts,
            if report.observes { "; observes: dropped is what would be" } else { "" },
            if state.paused { "; PAUSED" } else { "" }
        )),
    }
}

fn views(state: &State) -> Line<'static> {
    let name = |(i, view): (usize, View)| {
        let style = if view == state.view { Modifier::REVERSED.into() } else { Style::new() };
        [Span::styled(format!("{} {}", i + 1, view.name()), style), Span::raw("  ")]
    };
    Line::from(View::ALL.into_iter().enumerate().flat_map(name).collect::<Vec<_>>())
}

/// Heads of the columns. The one that rows are sorted by is in capitals.
fn head(state: &State, width: usize) -> Line<'static> {
    let of = |column, name: &str| if state.sort == column { name.to_uppercase() } else { name.to_owned() };
    let names = names(&of(Column::Name, "name"), "Mbit/s", width);
    let text = format!(
        "{names}{:>RATE$}{:>RATE$}{:>RATE$}{:>RATE$}{:>OTHER$}{:>DROPPED$}{:>FLOWS$}",
        of(Column::Down, "down"),
        "of",
        of(Column::Up, "up"),
        "of",
        of(Column::Other, "other%"),
        of(Column::Dropped, "dropped"),
        of(Column::Flows, "flows"),
    );
    Line::styled(text, Modifier::BOLD)
}

/// Fits a name, and the name for people if there is room, into what the numbers leave of a line.
fn names(name: &str, title: &str, width: usize) -> String {
    let room = width.saturating_sub(NUMBERS).max(NAME);
    match room.saturating_sub(NAME) {
        more @ 4.. if !title.is_empty() => {
            format!("{:<NAME$}{:<more$}", cut(name, NAME - 1), cut(title, more - 1))
        }
        _ => format!("{:<room$}", cut(name, room - 1)),
    }
}

fn line(row: &Row, width: usize) -> String {
    let rate = |load: Option<Load>| load.map_or("-".into(), |load| mbit(load.bps));
    let target = |load: Option<Load>| match load {
        _ if row.off => "off".into(),
        Some(load) if load.target_bps > 0 => mbit(load.target_bps as f64),
        _ => "-".into(),
    };
    format!(
        "{}{:>RATE$}{:>RATE$}{:>RATE$}{:>RATE$}{:>OTHER$}{:>DROPPED$}{:>FLOWS$}",
        names(&row.name, &row.title, width),
        rate(row.down),
        target(row.down),
        rate(row.up),
        target(row.up),
        percent(row.other),
        short(row.dropped),
        short(row.flows),
    )
}

/// Rate of a row at 90 % of what it may have.
fn is_full(load: Option<Load>) -> bool {
    load.is_some_and(|load| load.target_bps > 0 && load.bps >= 0.9 * load.target_bps as f64)
}

fn rows(frame: &mut Frame<'_>, area: Rect, state: &mut State) {
    let (height, width) = (usize::from(area.height), usize::from(area.width));
    state.scroll(height);
    let shown = state.rows.iter().enumerate().skip(state.top).take(height);
    let lines = shown.map(|(i, row)| {
        let style =
            Style::new().fg(if is_full(row.down) || is_full(row.up) { Color::Yellow } else { Color::Reset });
        let style = if i == state.selected { style.add_modifier(Modifier::REVERSED) } else { style };
        Line::styled(line(row, width), style)
    });
    let lines: Vec<Line<'_>> = lines.collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// The last two minutes of the selected row.
fn details(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let Some((row, history)) = state.rows.get(state.selected).zip(state.history()) else {
        frame.render_widget(Paragraph::new("no history"), area);
        return;
    };
    let [title, down, up] =
        Layout::vertical([Constraint::Length(3), Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let most = |way: usize| mbit(history.iter().map(|look| look[way]).max().unwrap_or(0) as f64);
    let head = [
        Line::raw(format!("{} {}", cut(&row.name, 64), cut(&row.title, 40))),
        Line::raw(format!("last {} s: at most {} Mbit/s down, {} up", history.len(), most(0), most(1))),
        Line::raw(row.quality.clone()),
    ];
    frame.render_widget(Paragraph::new(head.to_vec()), title);
    for (way, area, colour) in [(0, down, Color::Cyan), (1, up, Color::Magenta)] {
        let looks = history.iter().map(|look| look[way]);
        let fits = history.len().saturating_sub(usize::from(area.width));
        let looks: Vec<u64> = looks.skip(fits).collect();
        frame.render_widget(Sparkline::default().data(&looks).style(colour), area);
    }
}

fn foot(state: &State) -> Line<'static> {
    let filter = cut(&state.filter, 30);
    let count = state.rows.len();
    Line::styled(
        match (state.typing, filter.is_empty()) {
            (true, _) => format!("/{filter}_   {count} rows; Enter keeps, Esc shows all"),
            (false, true) => {
                format!(
                    "{count} rows   Tab view  s sort  r reverse  / filter  Enter details  p pause  q quit"
                )
            }
            (false, false) => format!("{count} rows with \"{filter}\"   Esc all  s sort  p pause  q quit"),
        },
        Modifier::DIM,
    )
}

#[cfg(test)]
mod tests {
    use super::super::state::After;
    use super::*;
    use crate::result::quality::Latency;
    use crate::result::running::GatewayReport;
    use crate::result::traffic::{Kind, Traffic};
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use ratatui::Terminal;
    use std::time::Instant;

    fn row(kind: Kind, name: &str, direction: &str, bps: f64, target_bps: u64) -> Traffic {
        let load = Load { bps, target_bps, bytes: 1_000, tcp_controlled_bytes: 1_000, ..Load::default() };
        Traffic { kind, name: name.into(), direction: direction.into(), load, ..Traffic::default() }
    }

    fn report(customers: usize) -> GatewayReport {
        let mut traffic = vec![row(Kind::Link, "eth1", "in", 2e9, 0)];
        for n in 0..customers {
            let name = n.to_string();
            let mut down = row(Kind::Customer, &name, "in", n as f64 * 1e4, 50_000_000);
            down.title = format!("Name of {n}");
            (down.load.tcp_controlled_bytes, down.load.unresponsive_bytes) = (500, 500);
            down.load.rtt_wan_us = Latency { samples: 3, p50: 38_200, p90: 0, p99: 120_400 };
            down.load.retransmitted_packets = 7;
            traffic.extend([down, row(Kind::Customer, &name, "out", 0.0, 10_000_000)]);
        }
        GatewayReport { traffic, wall_s: 12.0, ..GatewayReport::default() }
    }

    fn screen(state: &mut State) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let cells: Vec<&str> = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
        cells.chunks(80).map(|line| line.concat().trim_end().to_owned()).collect()
    }

    fn press(state: &mut State, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '^' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            assert_eq!(state.press(KeyEvent::from(code)), After::GoesOn);
        }
    }

    #[test]
    fn the_busiest_customers_come_first_with_their_names_and_numbers() {
        let mut state = State::new(report(300));
        let lines = screen(&mut state);
        assert_eq!(lines[0], "weir runs for 12 s; 0 restarts");
        let cells: Vec<&str> = lines[3].split_whitespace().collect();
        // 500 of 2,000 bytes are a quarter.
        assert_eq!(cells, ["299", "Name", "o~", "2.990", "50.0", "0", "10.0", "25", "0", "0"], "{lines:#?}");
        let heads: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(heads, ["name", "Mbit/s", "DOWN", "of", "up", "of", "other%", "dropped", "flows"]);
        assert!(lines[23].starts_with("300 rows"), "{lines:#?}");
    }

    /// Drops of a gateway that observes are none.
    #[test]
    fn a_gateway_that_observes_says_so() {
        let mut state = State::new(GatewayReport { observes: true, ..report(1) });
        assert_eq!(
            screen(&mut state)[0],
            "weir runs for 12 s; 0 restarts; observes: dropped is what would be"
        );
    }

    #[test]
    fn bytes_of_a_queue_are_not_told_apart() {
        let mut queued = row(Kind::Customer, "17", "out", 1e6, 0);
        (queued.load.tcp_controlled_bytes, queued.load.queued_bytes) = (0, queued.load.bytes);
        let mut state = State::new(GatewayReport { traffic: vec![queued], ..GatewayReport::default() });
        let cells: Vec<String> = screen(&mut state)[3].split_whitespace().map(str::to_owned).collect();
        assert_eq!(cells, ["17", "-", "-", "1.000", "-", "-", "0", "0"]);
    }

    #[test]
    fn keys_sort_filter_and_choose() {
        let mut state = State::new(report(300));
        press(&mut state, "r");
        assert!(screen(&mut state)[3].starts_with("0 "));
        press(&mut state, "r/29");
        let lines = screen(&mut state);
        assert!(lines[23].starts_with("/29_   13 rows") && lines[3].starts_with("299 "), "{lines:#?}");
        // 29, 129, 229, and 290 to 299. Here, q is a letter.
        press(&mut state, "q");
        assert!(screen(&mut state)[23].starts_with("/29q_   0 rows"));
        press(&mut state, "^1");
        assert!(screen(&mut state)[3].starts_with("eth1"));
        assert_eq!(state.press(KeyEvent::from(KeyCode::Char('q'))), After::Ends);
    }

    #[test]
    fn what_is_selected_stays_selected_while_rates_change() {
        let mut state = State::new(report(300));
        for _ in 0..30 {
            assert_eq!(state.press(KeyEvent::from(KeyCode::Down)), After::GoesOn);
        }
        assert_eq!(state.rows[state.selected].name, "269");
        let mut next = report(300);
        next.traffic.iter_mut().filter(|row| row.name == "5").for_each(|row| row.load.bps = 9e9);
        state.heard(Ok(next));
        assert_eq!((state.rows[0].name.as_str(), state.rows[state.selected].name.as_str()), ("5", "269"));
        assert!(screen(&mut state).iter().any(|line| line.starts_with("269 ")), "it is on the screen");
        press(&mut state, "\n");
        let lines = screen(&mut state);
        assert!(lines.iter().any(|line| line == "last 2 s: at most 2.690 Mbit/s down, 0 up"), "{lines:#?}");
        let quality = "RTT p50, p99 in ms: WAN 38.2 120, LAN - -; 7 resent";
        assert!(lines.iter().any(|line| line == quality), "{lines:#?}");
    }

    #[test]
    fn a_pause_keeps_what_is_shown_and_a_failure_is_said() {
        let mut state = State::new(report(3));
        press(&mut state, "p");
        state.heard(Ok(report(9)));
        assert_eq!((state.rows.len(), screen(&mut state)[0].ends_with("PAUSED")), (3, true));
        press(&mut state, "p");
        state.heard(Err("no gateway runs in this network namespace".into()));
        assert_eq!(screen(&mut state)[0], "no answer: no gateway runs in this network namespace");
    }

    #[test]
    fn hostile_names_are_text() {
        let mut state = State::new(GatewayReport {
            traffic: vec![row(Kind::Class, "a\x1b[2J\n<b>", "in", 1e6, 0)],
            ..GatewayReport::default()
        });
        let lines = screen(&mut state);
        assert!(lines[3].starts_with("a?[2J?<b>"), "{lines:#?}");
    }

    /// A machine that is busy has ten times as long as an idle one takes.
    #[test]
    fn ten_thousand_customers_do_not_stall_it() {
        let mut state = State::new(report(10_000));
        let begin = Instant::now();
        state.heard(Ok(report(10_000)));
        screen(&mut state);
        assert!(begin.elapsed().as_secs() < 2, "{:?}", begin.elapsed());
    }
}
