//! Nanoseconds that the hooks of `acks` steering take for a packet, as root: of one flow, whose records are
//! in the cache, and of 100,000 flows in 10,000 classes in random order.
//!
//! ```text
//! cargo bench -p weir-io --bench hooks                      all rows
//! cargo bench -p weir-io --bench hooks -- UDP               those with this in their names
//! cargo bench -p weir-io --bench hooks -- --before PATH     ten pairs with the benchmark of another build
//! ```
//!
//! Rates are so high that nothing is dropped.

mod boxes;
mod pairs;
mod rows;
mod turns;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    match args.next().as_deref() {
        Some("--before") => {
            let path = args.next().ok_or("--before needs the path of a benchmark's program")?;
            pairs::run(&path, args.next().as_deref().unwrap_or(""))
        }
        only => rows::run(only.unwrap_or(""), |name, ns| println!("{name}\t{ns:.1}")),
    }
}
