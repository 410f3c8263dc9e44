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
use std::sync::mpsc::{sync_channel, Receiver};
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
    let mut terminal = ratatui::try_init().map_err(|e| Failure::Other(format!("the terminal: {e}")))?;
    let mut state = State::new(first);
    let ended = shown(&mut terminal, &mut state, &answers);
    ratatui::restore();
    ended.map_err(|e| Failure::Other(format!("the terminal: {e}")))
}

fn shown(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    answers: &Receiver<Result<GatewayReport, String>>,
) -> std::io::Result<()> {
    loop {
        terminal.draw(|frame| draw::draw(frame, state))?;
        if event::poll(LOOK)? {
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Press && state.press(key) == After::Ends {
                return Ok(());
            }
        }
        answers.try_iter().for_each(|answer| state.heard(answer));
    }
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
