//! `weir traffic` (hidden): the lab's traffic generator; see [`crate::execute::traffic::serve`].

use crate::execute::traffic;

/// Runs the specification from standard input and writes the report to standard output.
pub fn run() -> Result<(), String> {
    let input = std::io::BufReader::new(std::io::stdin());
    traffic::serve(input, &mut std::io::stdout().lock())
}
