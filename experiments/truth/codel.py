"""CoDel by RFC 8289, section 5: the code of 5.4 and 5.5, with maxpacket as the largest packet that came.

With ECN a packet is marked where it would be dropped, and leaves (RFC 8290, section 4.2; RFC 8289 leaves
marks open, section 3). The RFC leaves open with what maxpacket begins: here with a full packet, as in Linux
(the MTU of the device). The control law divides the interval by a square root; times are whole nanoseconds,
rounded down.
"""

from collections import deque
from math import isqrt

import link


class Backlog:
    """Packets that wait, with their bytes."""

    def __init__(self):
        self.packets, self.bytes = deque(), 0

    def push(self, packet):
        self.packets.append(packet)
        self.bytes += packet.size

    def pop(self):
        packet = self.packets.popleft()
        self.bytes -= packet.size
        return packet


class Law:
    """The state of a queue, and its dequeue (5.5)."""

    def __init__(self, target, interval, ecn):
        self.target, self.interval, self.ecn = target, interval, ecn
        self.first_above = self.next_drop = self.count = self.last_count = 0
        self.dropping = False

    def control_law(self, time, count):
        return time + isqrt(self.interval * self.interval // count)

    def do_dequeue(self, backlog, now, maxpacket):
        """The packet at the head, and whether it may be dropped."""
        if not backlog.packets:
            self.first_above = 0
            return None, False
        packet = backlog.pop()
        if now - packet.at < self.target or backlog.bytes <= maxpacket:
            self.first_above = 0
        elif self.first_above == 0:
            self.first_above = now + self.interval
        elif now >= self.first_above:
            return packet, True
        return packet, False

    def marks(self, packet):
        if self.ecn and packet.ecn in (1, 2):
            packet.ecn = 3
            return True
        return self.ecn and packet.ecn == 3

    def dequeue(self, backlog, now, maxpacket):
        packet, ok = self.do_dequeue(backlog, now, maxpacket)
        if packet is None:
            self.dropping = False
        elif self.dropping:
            packet = self.go_on(packet, ok, backlog, now, maxpacket)
        elif ok:
            if not self.marks(packet):
                packet, _ = self.do_dequeue(backlog, now, maxpacket)
            self.begin(now)
        return packet

    def go_on(self, packet, ok, backlog, now, maxpacket):
        """Drops as many packets as are due."""
        self.dropping = ok
        while self.dropping and now >= self.next_drop:
            self.count += 1
            if self.marks(packet):
                self.next_drop = self.control_law(self.next_drop, self.count)
                break
            packet, ok = self.do_dequeue(backlog, now, maxpacket)
            if ok:
                self.next_drop = self.control_law(self.next_drop, self.count)
            else:
                self.dropping = False
        return packet

    def begin(self, now):
        """The first drop, at about the rate that was right when the last ones were not long ago."""
        self.dropping = True
        delta = self.count - self.last_count
        self.count = delta if delta > 1 and now - self.next_drop < 16 * self.interval else 1
        self.next_drop = self.control_law(now, self.count)
        self.last_count = self.count


class Codel:
    """First in, first out, with the law where packets leave."""

    def __init__(self, law, full):
        self.backlog, self.law, self.maxpacket = Backlog(), law, full

    def enqueue(self, _now, packet, _idle):
        self.maxpacket = max(self.maxpacket, packet.size)
        self.backlog.push(packet)

    def dequeue(self, now):
        return self.law.dequeue(self.backlog, now, self.maxpacket)


SIZES = [(1500,), (1500, 40), (1500, 1500, 600, 64), (1500, 1000)]
DELAYS = [(5_000_000, 100_000_000), (1_000_000, 20_000_000), (15_000_000, 300_000_000)]


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("codel", seed)
    rate = rng.choice([1_000_000, 7_777_777, 10_000_000, 100_000_000])
    ecn, overhead = rng.random() < 0.5, rng.choice(OVERHEADS)
    target, interval = rng.choice(DELAYS)
    fields = rng.choice([(0,), (2,), (0, 2), (0, 1, 2, 3)])
    come = link.arrivals(rng, 3000, rate, rng.choice([0.9, 1.05, 1.3]), 4, fields, rng.choice(SIZES))
    law = Law(target, interval, ecn)
    want = link.serve(come, Codel(law, 1500 + overhead), rate, overhead)
    options = dict(aqm="codel", target=f"{target}ns", interval=f"{interval}ns", ecn=str(ecn).lower())
    return link.difference(link.drive(weir, come, rate, overhead, **options), want)


OVERHEADS = (0, 14, 18, 38)
