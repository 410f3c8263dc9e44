//! Quality of Outcome (draft-ietf-ippm-qoo): a score between 0 and 100 for an application.
//!
//! A profile says with which latencies and which loss an application works perfectly, and with which it is of
//! no use. Between these the score falls evenly, and the worst value counts. The draft leaves the numbers of
//! profiles to those who know the applications: those here are estimates.

/// Latencies at a quantile, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The quantile, in millionths.
    pub ppm: u32,
    /// The application works perfectly up to this.
    pub perfect_us: u32,
    /// It is of no use from here on.
    pub useless_us: u32,
}

/// Demands of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name in reports.
    pub name: &'static str,
    /// Latencies at quantiles.
    pub latency: [Latency; 2],
    /// Loss in millionths with which it works perfectly, and with which it is of no use.
    pub loss_ppm: (u32, u32),
}

/// Values measured of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Latencies at the quantiles of a profile, in microseconds.
    pub latency_us: [u32; 2],
    /// Loss in millionths.
    pub loss_ppm: u32,
}

const fn latency(ppm: u32, perfect_ms: u32, useless_ms: u32) -> Latency {
    Latency { ppm, perfect_us: perfect_ms * 1_000, useless_us: useless_ms * 1_000 }
}

/// Quantiles that profiles ask for, in millionths.
pub const QUANTILES: [u32; 2] = [500_000, 990_000];

/// Profiles of applications. All ask for the same quantiles.
pub const PROFILES: [Profile; 3] = [
    Profile {
        name: "web",
        latency: [latency(500_000, 50, 500), latency(990_000, 150, 1_500)],
        loss_ppm: (1_000, 50_000),
    },
    Profile {
        name: "call",
        latency: [latency(500_000, 100, 400), latency(990_000, 150, 600)],
        loss_ppm: (1_000, 50_000),
    },
    Profile {
        name: "game",
        latency: [latency(500_000, 30, 150), latency(990_000, 60, 250)],
        loss_ppm: (1_000, 30_000),
    },
];

/// Position of a value between two: 100 at the first or below, 0 at the second or above.
fn between(value: u32, perfect: u32, useless: u32) -> u8 {
    if value <= perfect {
        return 100;
    }
    if value >= useless {
        return 0;
    }
    (100 * u64::from(useless - value) / u64::from(useless - perfect)) as u8
}

/// Returns the score of what was measured.
pub fn score(profile: &Profile, measured: &Measured) -> u8 {
    let latencies = profile.latency.iter().zip(measured.latency_us);
    let of_latency = latencies.map(|(l, us)| between(us, l.perfect_us, l.useless_us));
    let (perfect, useless) = profile.loss_ppm;
    of_latency.chain([between(measured.loss_ppm, perfect, useless)]).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: Profile = Profile {
        name: "test",
        latency: [latency(500_000, 100, 300), latency(990_000, 200, 600)],
        loss_ppm: (1_000, 51_000),
    };

    fn of(p50_ms: u32, p99_ms: u32, loss_ppm: u32) -> u8 {
        score(&PROFILE, &Measured { latency_us: [p50_ms * 1_000, p99_ms * 1_000], loss_ppm })
    }

    #[test]
    fn the_worst_value_counts() {
        assert_eq!((of(100, 200, 1_000), of(0, 0, 0)), (100, 100));
        // A quarter of the way in one, half in another.
        assert_eq!((of(150, 200, 0), of(100, 400, 0), of(150, 400, 0)), (75, 50, 50));
        assert_eq!((of(100, 100, 41_000), of(300, 200, 0), of(0, 0, 1_000_000)), (20, 0, 0));
    }

    #[test]
    fn profiles_leave_room_between_their_ends() {
        for profile in PROFILES {
            assert_eq!(profile.latency.map(|l| l.ppm), QUANTILES, "{}", profile.name);
            assert!(profile.latency.iter().all(|l| l.perfect_us < l.useless_us), "{}", profile.name);
            assert!(profile.loss_ppm.0 < profile.loss_ppm.1, "{}", profile.name);
        }
    }
}
