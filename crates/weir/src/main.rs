//! The `weir` command.
fn main() -> std::process::ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("traffic") => match weir::cmd::traffic::run() {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{e}");
                std::process::ExitCode::from(2)
            }
        },
        _ => std::process::ExitCode::from(2),
    }
}
