"""RED by Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993), figure 2,
with method 2 of section 7 and the averages of section 11, in bytes; beyond the upper threshold gentle (Floyd
2000).

What the paper leaves open are the draws. So the link's own signals are followed: each arrival has the
probability that the paper gives after the signals before it. No signal may come with probability 0, each must
with 1, and the signals of all arrivals together must be as many as their probabilities, within 5 standard
deviations.
"""

from collections import deque
from math import sqrt

import link

# The packets by which the average falls while nothing is sent (section 11).
SMALL = 1000


class Red:
    """A queue whose signals are those of the link."""

    def __init__(self, minimum, maximum, top, weight, rate, dropped):
        self.minimum, self.maximum, self.top, self.weight = minimum, maximum, top, 2.0**-weight
        self.small, self.dropped = SMALL * 8_000_000_000 // rate, dropped
        self.queue, self.bytes, self.average, self.count, self.idle = deque(), 0, 0.0, -1, 0
        self.expected = self.variance = self.signals = 0.0
        self.wrong = None

    def enqueue(self, now, packet, idle):
        if idle:
            self.average *= (1 - self.weight) ** ((now - self.idle) // self.small)
        self.average += self.weight * (self.bytes - self.average)
        signal = packet.number in self.dropped
        self.judge(packet, signal)
        if signal:
            self.count = -1
            return
        self.queue.append(packet)
        self.bytes += packet.size

    def judge(self, packet, signal):
        """Compares a signal with its probability. The link's average is rounded: it may be two bytes off."""
        certain, possible = self.final(self.average - 2) >= 1, self.final(self.average + 2) > 0
        if certain and not signal or signal and not possible:
            self.wrong = self.wrong or f"packet {packet.number}: signal {signal}, average {self.average}"
        p = self.final(self.average)
        self.count = self.count + 1 if p > 0 else -1
        self.signals += signal
        self.expected += p
        self.variance += p * (1 - p)

    def final(self, average):
        """The probability of an arrival. Averages are whole bytes here (section 11)."""
        average = int(average)
        if average <= self.minimum:
            return 0.0
        if average >= 2 * self.maximum:
            return 1.0
        if average < self.maximum:
            p = self.top * (average - self.minimum) / (self.maximum - self.minimum)
        else:
            p = self.top + (1 - self.top) * (average - self.maximum) / self.maximum
        count = self.count + 1
        return p / (1 - count * p) if count * p + p < 1 else 1.0

    def dequeue(self, now):
        if not self.queue:
            self.idle = now
            return None
        packet = self.queue.popleft()
        self.bytes -= packet.size
        return packet


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("red", seed)
    # Rates at which a small packet takes whole nanoseconds.
    rate = rng.choice([1_000_000, 10_000_000, 32_000_000])
    minimum, weight = rng.choice([4500, 7500, 15000]), rng.choice([2, 5, 9])
    maximum, top = minimum * rng.choice([2, 3]), rng.choice([0.02, 0.1, 0.5])
    come = link.arrivals(rng, 4000, rate, rng.choice([0.9, 1.0, 1.2]), 3, (0,), rng.choice([(1500,), (1500, 300)]))
    options = dict(aqm="red", red_min=f"{minimum}B", red_max=f"{maximum}B", red_p=top, red_weight=weight)
    got = link.drive(weir, come, rate, seed=seed + 1, **options)
    dropped = set(range(len(come))) - {number for number, _, _ in got}
    red = Red(minimum, maximum, top, weight, rate, dropped)
    found = link.difference(got, link.serve(come, red, rate))
    if found or red.wrong:
        return found or red.wrong
    far = abs(red.signals - red.expected)
    if far > 5 * sqrt(red.variance) + 1:
        return f"{red.signals:.0f} signals where {red.expected:.1f} are expected, deviation {sqrt(red.variance):.1f}"
    return None
