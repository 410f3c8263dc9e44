//! Requests and responses over one open connection. One end sends a request, the other answers, and the next
//! request follows after the response.

use super::{Exchanges, Quantiles};

/// One end of a conversation.
pub(super) struct Talk {
    asks: bool,
    request: u64,
    response: u64,
    to_write: u64,
    to_read: u64,
    asked_ns: Option<u64>,
    /// True if no further request follows.
    over: bool,
    latencies_ns: Vec<u64>,
}

impl Talk {
    /// Returns the end that sends requests (`asks`) or the end that answers, with these sizes.
    pub fn new(asks: bool, request: u64, response: u64) -> Talk {
        let (to_write, to_read) = if asks { (request, 0) } else { (0, request) };
        let latencies_ns = Vec::new();
        Talk { asks, request, response, to_write, to_read, asked_ns: None, over: false, latencies_ns }
    }

    /// Returns the number of bytes that may be written now.
    pub fn wants(&self) -> u64 {
        self.to_write
    }

    /// Returns whether this end has nothing more to send or to receive.
    pub fn is_over(&self) -> bool {
        self.over && self.to_write == 0 && (!self.asks || self.to_read == 0)
    }

    /// Makes the current exchange the last. The answering end calls it after its peer has closed.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Returns whether this end sends requests and so ends the conversation when its time is up.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Records that `bytes` were written at `now`.
    pub fn wrote(&mut self, now: u64, bytes: u64) {
        if self.asks {
            self.asked_ns.get_or_insert(now);
        }
        self.to_write -= bytes.min(self.to_write);
        if self.to_write == 0 {
            self.to_read = if self.asks { self.response } else { self.request };
        }
    }

    /// Records that `bytes` were read at `now`.
    pub fn read(&mut self, now: u64, bytes: u64) {
        self.to_read = self.to_read.saturating_sub(bytes);
        if self.to_read > 0 {
            return;
        }
        if !self.asks {
            self.to_write = self.response;
            return;
        }
        self.latencies_ns.extend(self.asked_ns.take().map(|asked| now.saturating_sub(asked)));
        self.to_write = if self.over { 0 } else { self.request };
    }

    /// Returns the exchanges up to `now`, at the end that sends requests.
    pub fn finish(mut self, now: u64) -> Option<Exchanges> {
        let count = self.latencies_ns.len() as u64;
        let under_way_ns = self.asked_ns.map(|asked| now.saturating_sub(asked));
        let mut most: Vec<u64> =
            self.latencies_ns.iter().copied().chain(under_way_ns.map(|_| u64::MAX)).collect();
        self.latencies_ns.extend(under_way_ns);
        let latency_ns = Quantiles::of(&mut self.latencies_ns);
        let most_ns = under_way_ns.and_then(|_| Quantiles::of(&mut most));
        self.asks.then_some(Exchanges { count, latency_ns, under_way_ns, most_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time() {
        let (mut asks, mut answers) = (Talk::new(true, 10, 100), Talk::new(false, 10, 100));
        assert_eq!((asks.wants(), answers.wants()), (10, 0));
        asks.wrote(5, 4);
        asks.wrote(6, 6);
        answers.read(7, 10);
        assert_eq!((asks.wants(), answers.wants()), (0, 100));
        answers.wrote(8, 100);
        asks.read(9, 60);
        asks.end();
        assert!(!asks.is_over());
        asks.read(11, 40);
        assert!(asks.is_over());
        let seen = asks.finish(50).unwrap();
        assert_eq!((seen.count, seen.latency_ns.unwrap().p50, seen.under_way_ns), (1, 6, None));
        assert!(answers.finish(50).is_none());
    }

    #[test]
    fn a_request_without_an_answer_has_waited() {
        let mut asks = Talk::new(true, 10, 100);
        asks.wrote(5, 10);
        asks.read(8, 100);
        asks.wrote(10, 10);
        let seen = asks.finish(50).unwrap();
        assert_eq!((seen.count, seen.under_way_ns), (1, Some(40)));
        assert_eq!((seen.latency_ns.unwrap().p50, seen.latency_ns.unwrap().p99), (3, 40));
        assert_eq!((seen.most_ns.unwrap().p50, seen.most_ns.unwrap().p99), (3, u64::MAX));
    }
}
