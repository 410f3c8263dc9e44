//! The model's flow in the simulator, as in the paper's figure 16.

use crate::command::sim::simulate;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Bytes of TCP and IPv4 headers, and of the Ethernet header, which queues count too.
const HEADERS: u64 = 40;
const ETHERNET: u64 = 14;
/// Receive window in round trips, and its minimum in KiB.
const ROUNDS: f64 = 8.0;
const LEAST_KIB: u64 = 64;

/// A flow at a rate of payload.
pub struct Flow {
    /// Rate of payload.
    pub rate: Rate,
    /// Round-trip time beyond the gateway.
    pub rtt: Duration,
    /// Bytes of payload in a packet.
    pub segment: u32,
}

impl Flow {
    /// Returns the flow's shares of its rate over `seconds` if one of `every` packets is lost: behind a queue
    /// of its own, and with its window sized.
    pub fn shares(&self, every: u64, seconds: u64) -> Result<[f64; 2], String> {
        let pfq = ("discipline = \"pfq\"\nqueue = \"100000p\"", HEADERS + ETHERNET);
        let tcr = ("ack = { preset = \"tcr\" }", HEADERS);
        Ok([self.share(pfq, every, seconds)?, self.share(tcr, every, seconds)?])
    }

    fn share(&self, (class, headers): (&str, u64), every: u64, seconds: u64) -> Result<f64, String> {
        let Flow { rate, rtt, segment } = self;
        let mss = u64::from(*segment);
        let bps = u128::from(rate.bps()) * u128::from(mss + headers) / u128::from(mss);
        let window = (ROUNDS * rate.bps() as f64 / 8.0 * rtt.as_secs_f64() / 1024.0) as u64;
        let run = simulate(&format!(
            "name = \"tss\"\nduration = \"{seconds}s\"\n[path]\nrtt = \"{}us\"\n[path.wan.out]\nloss_every = {every}\n\
             [tcp]\ncc = \"newreno\"\nmss = {segment}\nrwnd = \"{}KiB\"\ntimestamps = false\nmin_rto = \"1s\"\ndelayed_ack = 1\n\
             [[gateway.class]]\nname = \"all\"\nrate = \"{bps}bit\"\n{class}\n[[flow]]\nid = \"one\"\n",
            rtt.as_nanos() / 1_000,
            window.max(LEAST_KIB),
        ))?;
        let flow = run.flows.first().ok_or("no flow")?;
        Ok(flow.goodput_bps / rate.bps() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verifies that one loss in a thousand packets costs little of the rate, and one in twenty much.
    #[test]
    fn more_is_lost_with_more_losses() {
        let flow = Flow { rate: Rate::kbit(800), rtt: Duration::from_millis(50), segment: 1250 };
        let (few, many) = (flow.shares(1_000, 60).unwrap(), flow.shares(20, 60).unwrap());
        assert!(few.iter().all(|share| (0.9..1.01).contains(share)), "{few:?}");
        assert!(many.iter().zip(few).all(|(many, few)| *many < 0.95 * few), "{many:?}");
    }
}
