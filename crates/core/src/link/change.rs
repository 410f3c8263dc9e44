//! Changes of a link while frames are under way.

use super::bottleneck::Bottleneck;
use super::loss::Losses;
use super::{Config, Link, Serializer};
use crate::node::Cx;

impl Config {
    /// Returns the key that keeps a link of this configuration from becoming `next` while it runs.
    pub fn fixed(&self, next: &Config) -> Option<&'static str> {
        let other_trace = next.trace.is_some() && next.trace != self.trace;
        let fixed = [
            ("rate", self.rate.is_some() && next.rate.is_none()),
            ("rate_trace", other_trace),
            ("aqm", self.aqm != next.aqm),
            ("mark", self.mark != next.mark),
            ("burst", self.burst != next.burst),
            ("timer", self.timer != next.timer),
        ];
        fixed.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
    }
}

impl Link {
    /// Returns a link that can be changed while it runs. Its frames are handled one element after the other.
    pub(super) fn changeable(config: Config) -> Link {
        let mut link = Link::new(config);
        if let (Serializer::Pipe(_), Some(rate)) = (&link.serializer, config.rate) {
            link.serializer = Serializer::Bottleneck(Bottleneck::new(&config, rate));
        }
        link
    }

    /// Changes a [`changeable`](Link::changeable) link from `cx.now` on, in all that is not
    /// [fixed](Config::fixed). Frames under way have the new delay too, and none comes out before `cx.now`.
    /// Seed and epoch stay. Ask for the deadline again afterwards.
    pub(super) fn change(&mut self, cx: &mut Cx<'_>, next: Config) {
        let next = Config { seed: self.config.seed, epoch: self.config.epoch, ..next };
        self.advance(cx);
        let before = self.config;
        if let Some(rate) = next.rate.filter(|_| (before.rate, before.trace) != (next.rate, next.trace)) {
            self.set_rate(cx, rate);
        }
        if let (Serializer::Bottleneck(bottleneck), Some(rate)) = (&mut self.serializer, next.rate) {
            bottleneck.queue.set_limit(next.queue, rate);
        }
        if before.loss != next.loss {
            self.losses = Losses::new(next.loss, next.seed);
        }
        self.wire.change(cx.now, &before, &next);
        (self.config, self.takes_drafts) = (next, next.ignores_headers());
    }
}
