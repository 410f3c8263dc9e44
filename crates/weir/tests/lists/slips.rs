//! Slips of people and programs in texts, at random.

/// A sequence of numbers that look random (Knuth's linear congruential generator MMIX).
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// A text in which one to three things are as a slip leaves them.
pub fn mutated(text: &str, random: &mut Random) -> String {
    const SLIPS: [&str; 25] = [
        ",",
        "\"",
        " ",
        "\n",
        "\r",
        "\r#",
        "",
        "0",
        ".",
        "-",
        "#",
        "/",
        "e",
        "+",
        "_",
        "1e2",
        "true",
        "null",
        "\"\"",
        ", ",
        "100.64.0.9",
        "224.0.0.9",
        "0.0.0.0/0",
        "::1",
        "fe80::1",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(chars.len());
        let until = (at + random.below(3)).min(chars.len());
        let slip = SLIPS[random.below(SLIPS.len())];
        chars.splice(at..until, slip.chars());
    }
    chars.into_iter().collect()
}
