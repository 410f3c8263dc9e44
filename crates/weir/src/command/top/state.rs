//! State of `weir top`, and its changes by keys.

use crate::report::table::load::{millis, short, things};
use crate::result::running::{GatewayFlow, GatewayReport};
use crate::result::traffic::{Kind, Load};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

/// Lists that are shown one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    Links,
    Sites,
    Customers,
    Classes,
    Unlisted,
    Flows,
}

impl View {
    pub const ALL: [View; 6] =
        [View::Links, View::Sites, View::Customers, View::Classes, View::Unlisted, View::Flows];

    pub fn name(self) -> &'static str {
        match self {
            View::Links => "link",
            View::Sites => "sites",
            View::Customers => "customers",
            View::Classes => "classes",
            View::Unlisted => "unlisted",
            View::Flows => "flows",
        }
    }

    fn kind(self) -> Option<Kind> {
        match self {
            View::Links => Some(Kind::Link),
            View::Sites => Some(Kind::Site),
            View::Customers => Some(Kind::Customer),
            View::Classes => Some(Kind::Class),
            View::Unlisted => Some(Kind::Address),
            View::Flows => None,
        }
    }
}

/// Columns that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Name,
    Down,
    Up,
    Other,
    Dropped,
    Flows,
}

impl Column {
    const ALL: [Column; 6] =
        [Column::Down, Column::Up, Column::Other, Column::Dropped, Column::Flows, Column::Name];
}

/// A row: a thing in both directions, or a flow.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub name: String,
    /// A customer's name for people, or a flow's class.
    pub title: String,
    pub down: Option<Load>,
    pub up: Option<Load>,
    /// True for a customer who is off.
    pub off: bool,
    /// Share of all bytes that ACKs cannot slow, in percent.
    pub other: Option<f64>,
    pub dropped: u64,
    pub flows: u64,
    /// Round-trip times, packets sent again and scores, in words.
    pub quality: String,
}

/// Formats microseconds as milliseconds, 0 as unknown.
fn ms(us: u64) -> String {
    if us == 0 {
        return "-".into();
    }
    millis(us)
}

/// Describes the quality of the direction with more samples.
fn quality<'a>(loads: impl Iterator<Item = &'a Load>) -> String {
    let samples = |load: &&Load| load.rtt_wan_us.samples + load.rtt_lan_us.samples;
    let Some(load) = loads.max_by_key(samples).filter(|load| samples(load) > 0) else {
        return "no round trip was measured".into();
    };
    let (wan, lan) = (&load.rtt_wan_us, &load.rtt_lan_us);
    let score =
        load.score.map_or(String::new(), |s| format!("; web {}, call {}, game {}", s.web, s.call, s.game));
    format!(
        "RTT p50, p99 in ms: WAN {} {}, LAN {} {}; {} resent{score}",
        ms(wan.p50),
        ms(wan.p99),
        ms(lan.p50),
        ms(lan.p99),
        short(load.retransmitted_packets),
    )
}

impl Row {
    fn of(thing: &crate::report::table::load::Thing<'_>) -> Row {
        Row {
            name: thing.name.to_owned(),
            title: thing.title.to_owned(),
            down: thing.down.copied(),
            up: thing.up.copied(),
            off: thing.off,
            other: thing.unresponsive_percent(),
            dropped: thing.sum(|load| load.dropped_packets),
            flows: thing.sum(|load| load.active_flows),
            quality: quality(thing.loads()),
        }
    }

    fn of_flow(flow: &GatewayFlow, directions: &HashMap<&str, &str>) -> Row {
        let load = Load {
            bps: flow.bps,
            bytes: flow.bytes,
            target_bps: flow.target_bps.unwrap_or(0),
            held_bytes: flow.held_bytes.into(),
            ..Load::default()
        };
        let inward = directions.get(flow.class.as_str()) == Some(&"in");
        let (down, up) = if inward { (Some(load), None) } else { (None, Some(load)) };
        let name = format!("{} > {}", flow.src, flow.dst);
        let of = &flow.quality;
        let quality = format!(
            "RTT in ms: WAN {}, LAN {}; {} resent, {} reordered; held for {} ms",
            ms(of.rtt_wan_us.smoothed),
            ms(of.rtt_lan_us.smoothed),
            short(of.retransmitted_packets),
            short(of.reordered_packets),
            ms(of.ack_held_us),
        );
        Row { name, title: flow.class.clone(), down, up, other: Some(0.0), quality, ..Row::default() }
    }

    fn bps(load: Option<Load>) -> f64 {
        load.map_or(0.0, |load| load.bps)
    }

    /// Compares by a column; the busiest comes first.
    fn compare(&self, other: &Row, by: Column) -> Ordering {
        let more = |a: f64, b: f64| b.total_cmp(&a);
        match by {
            Column::Name => self.name.cmp(&other.name),
            Column::Down => more(Row::bps(self.down), Row::bps(other.down)),
            Column::Up => more(Row::bps(self.up), Row::bps(other.up)),
            Column::Other => more(self.other.unwrap_or(-1.0), other.other.unwrap_or(-1.0)),
            Column::Dropped => other.dropped.cmp(&self.dropped),
            Column::Flows => other.flows.cmp(&self.flows),
        }
    }
}

/// Consequence of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    GoesOn,
    Ends,
}

/// Looks that a history has: two minutes of one a second.
const LOOKS: usize = 120;

/// Bits per second, down and up, the latest last.
pub type History = VecDeque<[u64; 2]>;

/// State of the screen.
pub struct State {
    pub report: GatewayReport,
    /// Reason why the last question had no answer.
    pub failure: Option<String>,
    pub view: View,
    pub sort: Column,
    pub reversed: bool,
    pub filter: String,
    /// True while the filter is typed.
    pub typing: bool,
    pub paused: bool,
    pub details: bool,
    /// Rows of the view that pass the filter, in order.
    pub rows: Vec<Row>,
    /// Selected row, and the first one that is on the screen.
    pub selected: usize,
    pub top: usize,
    histories: HashMap<(View, String), History>,
}

impl State {
    pub fn new(report: GatewayReport) -> State {
        let customers = report.traffic.iter().any(|row| row.kind == Kind::Customer);
        let mut state = State {
            report: GatewayReport::default(),
            failure: None,
            view: if customers { View::Customers } else { View::Classes },
            sort: Column::Down,
            reversed: false,
            filter: String::new(),
            typing: false,
            paused: false,
            details: false,
            rows: Vec::new(),
            selected: 0,
            top: 0,
            histories: HashMap::new(),
        };
        state.heard(Ok(report));
        state
    }

    /// Takes an answer of the gateway. While it is paused, what is shown stays.
    pub fn heard(&mut self, answer: Result<GatewayReport, String>) {
        if self.paused {
            return;
        }
        match answer {
            Ok(report) => {
                self.failure = None;
                self.report = report;
                self.note();
                self.arrange();
            }
            Err(why) => self.failure = Some(why),
        }
    }

    /// Notes the rates of all things. Those that are gone are forgotten.
    fn note(&mut self) {
        let mut before = std::mem::take(&mut self.histories);
        for view in View::ALL {
            let Some(kind) = view.kind() else { continue };
            for thing in things(&self.report.traffic, kind) {
                let key = (view, thing.name.to_owned());
                let mut history = before.remove(&key).unwrap_or_default();
                if history.len() >= LOOKS {
                    history.pop_front();
                }
                history.push_back([thing.down, thing.up].map(|load| load.map_or(0.0, |l| l.bps) as u64));
                self.histories.insert(key, history);
            }
        }
    }

    /// Returns the last rates of the selected row.
    pub fn history(&self) -> Option<&History> {
        self.histories.get(&(self.view, self.rows.get(self.selected)?.name.clone()))
    }

    /// Collects, filters and sorts the rows of the view. The selected row stays selected.
    fn arrange(&mut self) {
        let selected = self.rows.get(self.selected).map(|row| row.name.clone());
        self.rows = match self.view.kind() {
            Some(kind) => things(&self.report.traffic, kind).iter().map(Row::of).collect(),
            None => {
                let classes = self.report.classes.iter();
                let ways = classes.map(|c| (c.class.name.as_str(), c.direction.as_str())).collect();
                self.report.flows.iter().map(|flow| Row::of_flow(flow, &ways)).collect()
            }
        };
        let wanted = self.filter.to_lowercase();
        if !wanted.is_empty() {
            let has = |text: &str| text.to_lowercase().contains(&wanted);
            self.rows.retain(|row| has(&row.name) || has(&row.title));
        }
        let sort = self.sort;
        self.rows.sort_by(|a, b| a.compare(b, sort).then_with(|| a.name.cmp(&b.name)));
        if self.reversed {
            self.rows.reverse();
        }
        let place = selected.and_then(|name| self.rows.iter().position(|row| row.name == name));
        self.selected = place.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }

    /// Does what a key asks for.
    pub fn press(&mut self, key: KeyEvent) -> After {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return After::Ends;
        }
        if self.typing {
            self.type_in(key.code);
            return After::GoesOn;
        }
        match key.code {
            KeyCode::Char('q') => return After::Ends,
            KeyCode::Esc if self.details => self.details = false,
            KeyCode::Esc => self.look_for(String::new()),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Enter => self.details = !self.details,
            KeyCode::Char('r') => self.order(self.sort, !self.reversed),
            KeyCode::Char('s') => self.order(next(&Column::ALL, self.sort, 1), false),
            KeyCode::Tab | KeyCode::Right => self.go_to(next(&View::ALL, self.view, 1)),
            KeyCode::BackTab | KeyCode::Left => self.go_to(next(&View::ALL, self.view, View::ALL.len() - 1)),
            KeyCode::Char(digit @ '1'..='6') => self.go_to(View::ALL[digit as usize - '1' as usize]),
            KeyCode::Up => self.select(-1),
            KeyCode::Down => self.select(1),
            KeyCode::PageUp => self.select(-20),
            KeyCode::PageDown => self.select(20),
            KeyCode::Home => self.select(isize::MIN),
            KeyCode::End => self.select(isize::MAX),
            _ => {}
        }
        After::GoesOn
    }

    fn type_in(&mut self, key: KeyCode) {
        let mut filter = self.filter.clone();
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                filter.clear();
            }
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Char(c) => filter.push(c),
            _ => {}
        }
        self.look_for(filter);
    }

    fn look_for(&mut self, filter: String) {
        self.filter = filter;
        self.begin();
    }

    fn order(&mut self, sort: Column, reversed: bool) {
        (self.sort, self.reversed) = (sort, reversed);
        self.begin();
    }

    fn go_to(&mut self, view: View) {
        self.view = view;
        self.begin();
    }

    /// Shows the list from its beginning.
    fn begin(&mut self) {
        self.rows.clear();
        (self.selected, self.top) = (0, 0);
        self.arrange();
    }

    fn select(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// Moves the first row on the screen so that the selected one is among `height` rows.
    pub fn scroll(&mut self, height: usize) {
        let last = self.rows.len().saturating_sub(height);
        self.top = self.top.min(last).min(self.selected).max((self.selected + 1).saturating_sub(height));
    }
}

/// Returns the element this many places behind another, going round.
fn next<T: Copy + PartialEq>(all: &[T], now: T, by: usize) -> T {
    let place = all.iter().position(|one| *one == now).unwrap_or(0);
    all[(place + by) % all.len()]
}
