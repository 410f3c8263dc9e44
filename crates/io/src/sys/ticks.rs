//! Work of the processors since the machine started (proc_stat(5)).

/// Ticks in a second (USER_HZ).
const HERTZ: f64 = 100.0;

/// Clock ticks of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// All ticks.
    pub all: u64,
    /// Ticks in which a processor was idle or waited for a disk.
    pub idle: u64,
    /// Ticks that a hypervisor gave to other machines.
    pub stolen: u64,
}

impl Ticks {
    /// Ticks up to now; zeros where the kernel does not tell.
    pub fn now() -> Ticks {
        Ticks::of(&std::fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
    }

    /// Parses `/proc/stat`. Its first line is user, nice, system, idle, iowait, irq, softirq, steal and the
    /// time of guests, which user and nice contain.
    fn of(text: &str) -> Option<Ticks> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let [_, _, _, idle, disk, _, _, stolen] = ticks[..] else { return None };
        Some(Ticks { all: ticks.iter().sum(), idle: idle + disk, stolen })
    }

    /// Ticks since `before`.
    #[must_use]
    pub fn since(self, before: Ticks) -> Ticks {
        Ticks {
            all: self.all.saturating_sub(before.all),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    /// Percentage of all ticks that a hypervisor gave to other machines.
    pub fn stolen_percent(self) -> f64 {
        self.stolen as f64 * 100.0 / self.all.max(1) as f64
    }

    /// Processor seconds in which this machine was busy.
    pub fn busy_s(self) -> f64 {
        self.all.saturating_sub(self.idle + self.stolen) as f64 / HERTZ
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let before = Ticks::of("cpu  100 10 50 800 20 5 15 0 40 0\ncpu0 1 1").unwrap();
        assert_eq!(before, Ticks { all: 1000, idle: 820, stolen: 0 });
        let after = Ticks::of("cpu  130 10 60 860 20 5 15 100 40 0\n").unwrap();
        let ran = after.since(before);
        assert!((ran.stolen_percent() - 50.0).abs() < 1e-9);
        // 30 ticks of user and 10 of system.
        assert!((ran.busy_s() - 0.4).abs() < 1e-9);
        assert_eq!(after.since(after).stolen_percent(), 0.0);
        for strange in ["", "cpu", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9"] {
            assert_eq!(Ticks::of(strange), None, "{strange}");
        }
    }
}
