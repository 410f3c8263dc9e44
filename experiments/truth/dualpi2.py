"""DualPI2 by RFC 9332, appendix A: the controller (figure 6), the coupling and the ramp (figures 3 to 5),
`recur` in place of a draw (A.1), overload (A.2).

What the RFC leaves open: the scheduler, which must prefer the L4S queue without starving the other (4.2.2:
weighted round robin of 9 to 1 by bytes here, as in Linux), which queue's delay the controller looks at (the
longer one, as in Linux), and the arithmetic (p'
has 64 binary places and probabilities have 32, rounded down).
"""

from collections import deque
from fractions import Fraction

import link

ALPHA, BETA = Fraction(16, 100), Fraction(32, 10)
TARGET, UPDATE = 15_000_000, 16_000_000
STEP, RANGE, COUPLING = 800_000, 400_000, 2
UNIT = 1 << 32


def rounded(p):
    """A probability with 32 bits behind the point."""
    return Fraction(int(p * UNIT), UNIT)


class DualPi2:
    """Two queues. The base probability is p' of the RFC."""

    def __init__(self):
        self.l4s, self.classic, self.credit = deque(), deque(), 0
        self.base, self.waited, self.next = Fraction(0), 0, None
        self.shares = {"l4s": Fraction(0), "classic": Fraction(0)}

    def update(self, now):
        """Figure 6, at each update that is due."""
        if self.next is None:
            self.next = now + UPDATE
        while self.next <= now:
            waits = max([self.next - queue[0].at for queue in (self.l4s, self.classic) if queue], default=0)
            error, change = Fraction(waits - TARGET, 10**9), Fraction(waits - self.waited, 10**9)
            base = self.base + ALPHA * error + BETA * change
            # 64 bits behind the point keep the fractions short.
            self.base = Fraction(int(min(max(base, 0), 1) * 2**64), 2**64)
            self.waited = waits
            self.next += UPDATE

    def enqueue(self, now, packet, _idle):
        self.update(now)
        (self.l4s if packet.ecn & 1 else self.classic).append(packet)

    def recur(self, which, p):
        """Signals as often as the probability says, without a draw."""
        self.shares[which] += min(p, 1)
        if self.shares[which] > 1 or p >= 1:
            self.shares[which] -= min(self.shares[which], 1)
            return True
        return False

    def dequeue(self, now):
        self.update(now)
        while self.l4s or self.classic:
            l4s = bool(self.l4s) and (not self.classic or self.credit <= 0)
            packet = (self.l4s if l4s else self.classic).popleft()
            if not (self.keeps_l4s if l4s else self.keeps_classic)(now, packet):
                continue
            self.credit += packet.size if l4s else -9 * packet.size
            if not self.l4s and not self.classic:
                self.credit = 0
            return packet
        return None

    def keeps_l4s(self, now, packet):
        base = rounded(self.base)
        if COUPLING * base >= 1:
            if self.recur("l4s", rounded(base * base)):
                return False
            packet.ecn = 3
            return True
        waited = now - packet.at
        native = Fraction(0)
        if self.l4s and waited >= STEP:
            native = min(rounded(Fraction(waited - STEP, RANGE)), 1)
        if self.recur("l4s", max(native, COUPLING * base)):
            packet.ecn = 3
        return True

    def keeps_classic(self, _now, packet):
        base = rounded(self.base)
        if self.recur("classic", rounded(base * base)):
            if packet.ecn == 0 or COUPLING * base >= 1:
                return False
            packet.ecn = 3
        return True


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("dualpi2", seed)
    rate = rng.choice([5_000_000, 10_000_000, 50_000_000])
    fields = rng.choice([(0, 1), (0, 2, 1), (0,), (1,), (0, 3)])
    sizes = rng.choice([(1500,), (1500, 300)])
    come = link.arrivals(rng, 3000, rate, rng.choice([0.8, 1.0, 1.3]), 4, fields, sizes)
    want = link.serve(come, DualPi2(), rate)
    return link.difference(link.drive(weir, come, rate, aqm="dualpi2"), want)
