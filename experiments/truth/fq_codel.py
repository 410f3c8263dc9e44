"""FQ-CoDel by RFC 8290, section 4, with CoDel of each queue by RFC 8289 (codel.py).

What the RFC leaves open: the hash (packets of a flow are together here; where two flows share a queue of the
link, the case is done once more with another seed of its hash), and a packet that finds the whole queue empty
and nothing being sent, which is sent at once and uses up no deficit, as in Linux (TCQ_F_CAN_BYPASS).
"""

from collections import deque

import link
from codel import SIZES, Backlog, Law


class Flow:
    """A queue, with its deficit."""

    def __init__(self, law):
        self.backlog, self.law, self.deficit, self.listed = Backlog(), law, 0, False


class FqCodel:
    """New queues before old ones, each with a quantum of bytes for its turn (4.2)."""

    def __init__(self, quantum, ecn, full):
        self.quantum, self.ecn, self.maxpacket = quantum, ecn, full
        self.flows, self.new, self.old, self.packets = {}, deque(), deque(), 0
        self.bypass = None

    def enqueue(self, _now, packet, idle):
        if idle and self.packets == 0:
            self.bypass = packet
            return
        self.maxpacket = max(self.maxpacket, packet.size)
        if packet.flow not in self.flows:
            self.flows[packet.flow] = Flow(Law(5_000_000, 100_000_000, self.ecn))
        flow = self.flows[packet.flow]
        flow.backlog.push(packet)
        self.packets += 1
        if not flow.listed:
            flow.listed, flow.deficit = True, self.quantum
            self.new.append(flow)

    def dequeue(self, now):
        if self.bypass:
            packet, self.bypass = self.bypass, None
            return packet
        while self.new or self.old:
            turn = self.new or self.old
            flow = turn[0]
            if flow.deficit <= 0:
                flow.deficit += self.quantum
                self.old.append(turn.popleft())
                continue
            waited = len(flow.backlog.packets)
            packet = flow.law.dequeue(flow.backlog, now, self.maxpacket)
            self.packets -= waited - len(flow.backlog.packets)
            if packet:
                flow.deficit -= packet.size
                return packet
            self.leave(turn)
        return None

    def leave(self, turn):
        """A queue that is empty leaves, but a new one goes behind the old ones first, if there are any."""
        flow = turn.popleft()
        if turn is self.new and self.old:
            self.old.append(flow)
        else:
            flow.listed = False


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("fq-codel", seed)
    rate = rng.choice([1_000_000, 7_777_777, 10_000_000])
    quantum, ecn, overhead = rng.choice([300, 1514, 3000]), rng.random() < 0.5, rng.choice(OVERHEADS)
    load, flows = rng.choice([0.9, 1.1, 1.5]), rng.choice([1, 2, 5, 20])
    come = link.arrivals(rng, 2500, rate, load, flows, (0, 2, 3), rng.choice(SIZES))
    want = link.serve(come, FqCodel(quantum, ecn, 1500 + overhead), rate, overhead)
    options = dict(aqm="fq-codel", flows=65536, quantum=quantum, ecn=str(ecn).lower())
    found = None
    for hash_seed in (1, 2):
        found = link.difference(link.drive(weir, come, rate, overhead, seed=hash_seed, **options), want)
        if found is None:
            return None
    return found


OVERHEADS = (0, 14, 18, 38)
