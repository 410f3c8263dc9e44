//! `weir top`: the traffic of a running gateway, live in a terminal.

mod draw;
mod state;

use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::field;
use crate::result::running::GatewayReport;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use state::{After, State};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `weir top`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Keys:
  Tab, 1 to 6   link, sites, customers, classes, unlisted addresses, flows
  s, r          sort by the next column, in the other order
  /             show what has the text that you type in its name; Enter keeps it, Esc shows all
  Enter         the last two minutes of the selected row
  p             pause
  q             quit

Names are those of `weir ctl show`, and so are the numbers.")]
pub struct Args {
    /// The interface of the gateway, if several gateways run
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
}

/// Time between two looks at the gateway.
const EVERY: Duration = Duration::from_secs(1);
/// Longest time until an answer is drawn.
const LOOK: Duration = Duration::from_millis(100);

/// Shows the traffic until a key ends it.
pub fn run(args: &Args) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        let why = "standard output is no terminal: `weir ctl show --watch` prints lines";
        return Err(Failure::Input(why.into()));
    }
    // A gateway that does not answer is said before the terminal is taken.
    let first = ask(args.dev.as_deref()).map_err(Failure::Other)?;
    let answers = asked_by_a_thread(args.dev.clone());
    let the_terminal = |e: std::io::Error| Failure::Other(format!("the terminal: {e}"));
    let stopped = stopped_by_signals().map_err(the_terminal)?;
    let mut terminal = ratatui::try_init().map_err(the_terminal)?;
    let mut state = State::new(first);
    let ended = shown(&mut terminal, &mut state, &answers, &stopped);
    ratatui::restore();
    ended.map_err(the_terminal)
}

/// Returns a flag that signals set, so that the terminal is given back before the end.
fn stopped_by_signals() -> std::io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stopped.clone())?;
    }
    Ok(stopped)
}

fn shown(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    answers: &Receiver<Result<GatewayReport, String>>,
    stopped: &AtomicBool,
) -> std::io::Result<()> {
    while !stopped.load(Ordering::Relaxed) {
        terminal.draw(|frame| draw::draw(frame, state))?;
        if event::poll(LOOK)? {
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Press && state.press(key) == After::Ends {
                return Ok(());
            }
        }
        answers.try_iter().for_each(|answer| state.heard(answer));
    }
    Ok(())
}

/// Returns the answers of the gateway, one a second. A gateway that is slow makes no key wait.
fn asked_by_a_thread(dev: Option<String>) -> Receiver<Result<GatewayReport, String>> {
    let (sender, answers) = sync_channel(1);
    std::thread::spawn(move || loop {
        std::thread::sleep(EVERY);
        if sender.send(ask(dev.as_deref())).is_err() {
            return;
        }
    });
    answers
}

fn ask(dev: Option<&str>) -> Result<GatewayReport, String> {
    field::report(dev, "show all")
}
