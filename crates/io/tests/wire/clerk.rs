//! A thread that reads and writes files for an engine under test, which may not open any itself.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, Sender};

enum Order {
    Write(PathBuf, String),
    Take(PathBuf),
}

/// The way to the thread. It is started before the engine gives up its rights.
pub struct Clerk {
    orders: Sender<Order>,
    answers: Receiver<String>,
}

impl Clerk {
    pub fn start() -> Clerk {
        let (orders, theirs) = channel();
        let (answer, answers) = channel();
        let run = move || drop(theirs.into_iter().map(follow).try_for_each(|text| answer.send(text)));
        // A locked stack counts as memory of the engine.
        std::thread::Builder::new().stack_size(128 << 10).spawn(run).unwrap();
        Clerk { orders, answers }
    }

    /// Writes a file, whole or not at all, since a test may be reading.
    pub fn write(&self, to: &Path, text: &str) {
        self.order(Order::Write(to.to_owned(), text.to_owned()));
    }

    /// Text of a file, which is removed; nothing if there is none.
    pub fn take(&self, from: &Path) -> String {
        self.order(Order::Take(from.to_owned()))
    }

    fn order(&self, order: Order) -> String {
        self.orders.send(order).unwrap();
        self.answers.recv().unwrap()
    }
}

fn follow(order: Order) -> String {
    match order {
        Order::Write(to, text) => {
            let draft = to.with_extension("new");
            let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &to));
            // An engine outlives that no file can be opened.
            written.unwrap_or_else(|error| eprintln!("statistics: {error}"));
            String::new()
        }
        Order::Take(from) => {
            let text = std::fs::read_to_string(&from).unwrap_or_default();
            if !text.is_empty() {
                std::fs::remove_file(&from).unwrap();
            }
            text
        }
    }
}
