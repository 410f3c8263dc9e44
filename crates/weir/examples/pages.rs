//! Manual pages and completions of `weir`, made from the descriptions of its commands.
//!
//! `cargo run -p weir --example pages -- DIRECTORY`

use clap_complete::Shell;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(to) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(std::io::Error::other("usage: pages DIRECTORY"));
    };
    let (manual, completions) = (to.join("man"), to.join("completions"));
    std::fs::create_dir_all(&manual)?;
    std::fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(weir::command::cli::plain(), &manual)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut weir::command::cli::plain(), "weir", &completions)?;
    }
    Ok(())
}
