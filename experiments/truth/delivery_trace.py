"""Delivery traces by mahimahi's rule (Netravali et al. 2015, and the manual page mm-link): each line of a
trace is a millisecond in which 1,504 bytes may leave; what is not used is lost, a packet may take several,
and the trace begins again behind its last line. A packet counts with the four bytes of mahimahi's tunnel. One
that comes within a millisecond is too late for it.
"""

import os
import tempfile
from collections import deque

import link

OPPORTUNITY = 1504
TUNNEL = 4
MS = 1_000_000


def departures(arrivals, trace, limit):
    """As (number, time, ECN field), with at most `limit` packets that wait."""
    out, waiting, left, next_, base, k = [], deque(), 0, 0, 0, 0
    while next_ < len(arrivals) or waiting:
        at = (base + trace[k]) * MS
        while next_ < len(arrivals) and arrivals[next_][0] < at:
            # The packet at the head does not count once a part of it has left.
            if len(waiting) - (left > 0) < limit:
                waiting.append((next_, arrivals[next_][1] + TUNNEL))
            next_ += 1
        room = OPPORTUNITY
        while room and waiting:
            left = left or waiting[0][1]
            sent = min(room, left)
            room, left = room - sent, left - sent
            if left == 0:
                out.append((waiting.popleft()[0], at, 0))
        k += 1
        if k == len(trace):
            k, base = 0, base + trace[-1]
    return out


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("delivery-trace", seed)
    trace = sorted(rng.randint(0, 60) for _ in range(rng.randint(1, 60)))
    trace[-1] = trace[-1] or 5
    mean, load = trace[-1] * MS / len(trace), rng.choice([0.3, 0.9, 1.5])
    now, come = 0, []
    for _ in range(1500):
        now += int(rng.expovariate(1) * mean / load * 0.7)
        if rng.random() < 0.1:
            now = now // MS * MS
        if rng.random() < 0.01:
            now += 700 * MS
        if come:
            now = max(now, come[-1][0])
        come.append((now, rng.choice([1500, 1500, 60, 700]), 0, 0))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "trace")
        with open(path, "w", encoding="ascii") as file:
            file.write("".join(f"{at}\n" for at in trace))
        got = link.run(weir, come, dict(delivery_trace=path, overhead=TUNNEL, queue="30p"))
    return link.difference(got, departures(come, trace, 30))
