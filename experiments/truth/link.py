"""One server with a queue, and the link of the simulator beside it.

A queue discipline is an object with two methods: `enqueue(now, packet, idle)`, with `idle` where nothing is
being sent, and `dequeue(now)`, which returns the packet to be sent or None. Times are whole nanoseconds. A
packet takes its bits over the rate, and what is left of the division is carried to the next one of the same
busy period.
"""

import random
import subprocess

# Bytes that the link counts beside an IP packet.
ETHERNET = 14


class Packet:
    """A packet that arrives: `size` is what the rate counts of it."""

    __slots__ = ("number", "at", "size", "flow", "ecn")

    def __init__(self, number, at, size, flow, ecn):
        self.number, self.at, self.size, self.flow, self.ecn = number, at, size, flow, ecn


def serve(arrivals, queue, rate, overhead=ETHERNET):
    """Departures as (number, time, ECN field). A departure comes before an arrival of the same nanosecond."""
    out, sending, due, left, i = [], None, 0, 0, 0
    while i < len(arrivals) or sending:
        if sending and (i == len(arrivals) or due <= arrivals[i][0]):
            out.append((sending.number, due, sending.ecn))
            sending, now = queue.dequeue(due), due
        else:
            now, size, flow, ecn = arrivals[i]
            idle = sending is None
            queue.enqueue(now, Packet(i, now, size + overhead, flow, ecn), idle)
            i += 1
            if not idle:
                continue
            sending, left = queue.dequeue(now), 0
        if sending:
            bits = sending.size * 8_000_000_000 + left
            due, left = now + bits // rate, bits % rate
    return out


def drive(weir, arrivals, rate, overhead=ETHERNET, queue="1000000p", **options):
    """As `serve`, by the link of the simulator. Underscores in the names of options are hyphens."""
    options = dict(options, rate=f"{rate}bit", overhead=overhead, queue=queue)
    return run(weir, arrivals, options)


def run(weir, arrivals, options):
    """What `weir model link` prints for these arrivals."""
    words = [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]
    text = "".join("%d %d %d %d\n" % arrival for arrival in arrivals)
    done = subprocess.run([weir, "model", "link", *words], input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = (line for line in done.stdout.splitlines() if not line.startswith("#"))
    return [tuple(map(int, line.split())) for line in lines]


def arrivals(rng, count, rate, load, flows=1, ecn=(0,), sizes=(1500,)):
    """Packets as (time, IP bytes, flow, ECN field), with exponential gaps and a load that changes."""
    now, out, factor = 0, [], 1.0
    mean = sum(sizes) / len(sizes) * 8e9 / rate
    for k in range(count):
        if k % 200 == 0:
            factor = load * rng.choice([0.5, 0.9, 1.0, 1.1, 1.5, 2.5])
        now += int(rng.expovariate(1) * mean / factor) + 1
        flow = rng.randrange(flows)
        size = rng.choice(sizes) if k else 1500
        out.append((now, size, flow, ecn[flow % len(ecn)]))
    return out


def difference(got, want):
    """Where two lists of departures differ, in words; None where they are the same."""
    for k, (ours, theirs) in enumerate(zip(got, want)):
        if ours != theirs:
            return f"departure {k}: the link has {ours}, the reference {theirs}"
    if len(got) != len(want):
        return f"the link has {len(got)} departures, the reference {len(want)}"
    return None


def generator(name, seed):
    """A generator of its own for each case."""
    return random.Random(f"{name} {seed}")
