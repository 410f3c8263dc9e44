"""Slow start behind a slow reverse channel, without a filter and with a threshold, by Barakat and Altman, "On
ACK Filtering on a Slow Reverse Channel" (2000), section 2. The channel carries mu ACKs per second. Each ACK
of a new packet lets two packets leave while the window grows by one with each ACK, so once the channel is
full, 2 mu packets per second are acknowledged by mu ACKs per second if each packet is acknowledged, and (d +
1) mu if every d-th one is. An ACK that finds a threshold of others waiting takes the place of the last one.

Counted packet by packet in exact fractions: the sender answers each ACK at once, by what it acknowledges and
one packet more, and the receiver acknowledges each packet. The times of ACKs are compared with what the
simulator's sender has acknowledged, to the packet. Self-clocking lets ACKs come to the channel in the very
moment in which another has left it, whatever the rates are. Here, as in the simulator, the one that leaves is
first. The other way round a threshold of one ACK has 558 packets after three seconds of the paper's scenario
instead of 612.
"""

import heapq
from fractions import Fraction

import link
from tree import simulate

HEADERS = 40
PACKET = 1000


# What comes first of things at the same time.
LEFT, CAME, TOLD = 0, 1, 2


def acknowledged(rtt, forward, reverse, until, threshold=None):
    """Packets that are acknowledged at the times `until`, in nanoseconds from the first packet on."""
    packet, ack = Fraction(PACKET * 8_000_000_000, forward), Fraction(HEADERS * 8_000_000_000, reverse)
    way = Fraction(rtt, 2)
    events, waiting, counts = [], [], []
    free, sent, told, made, busy = Fraction(0), 0, 0, 0, False

    def happens(time, what, number):
        nonlocal made
        heapq.heappush(events, (time, what, made, number))
        made += 1

    def send(now, packets):
        nonlocal free, sent
        for _ in range(packets):
            free, sent = max(now, free) + packet, sent + 1
            happens(free + way, CAME, sent)

    send(Fraction(0), 1)
    while len(counts) < len(until):
        time, what, _, number = heapq.heappop(events)
        while len(counts) < len(until) and time > until[len(counts)]:
            counts.append(told)
        if what == TOLD:
            new, told = number - told, number
            send(time, new + 1)
            continue
        if what == LEFT:
            happens(time + way, TOLD, number)
            busy = bool(waiting)
            number = waiting.pop(0) if busy else None
        elif busy:
            if threshold is not None and len(waiting) >= threshold:
                waiting.pop()
            waiting.append(number)
            continue
        if number is not None:
            busy = True
            happens(time + ack, LEFT, number)
    return counts


def experiment(rtt_ms, forward, reverse, threshold, seconds):
    """The paper's scenario: one transfer in slow start throughout."""
    policy = '"none"' if threshold is None else f'{{ policy = "static", threshold = {threshold} }}'
    return f"""
name = "slow-reverse"
duration = "{seconds}s"
interval = "500ms"
series = ["acked"]
[path]
rtt = "{rtt_ms}ms"
[path.wan]
overhead = 0
[path.wan.out]
rate = "{forward}bit"
queue = "1000000p"
[path.wan.back]
rate = "{reverse}bit"
queue = "1000000p"
ack_filter = {policy}
[[flow]]
id = "bulk"
cc = "reno"
mss = {PACKET - HEADERS}
timestamps = false
initial_window = 1
delayed_ack = 1
quick_acks = 0
push_acks = false
abc = false
rwnd = "1GB"
"""


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("slow-reverse", seed)
    rtt_ms, forward = rng.choice([20, 50, 100, 200]), rng.choice([10_000_000, 30_000_000])
    reverse = rng.choice([50_000, 80_000, 99_989, 100_000, 100_003, 200_000])
    threshold = rng.choice([None, 1, 2, 3, 10, 30, 100])
    result = simulate(weir, experiment(rtt_ms, forward, reverse, threshold, 4))
    series = next(iter(s for s in result["series"].values() if "acked_bytes" in s))
    times, bytes_ = series["t_s"], series["acked_bytes"]
    first = next(i for i, acked in enumerate(bytes_) if acked > 0)
    rtt = rtt_ms * 1_000_000
    # The first packet was sent a round trip before its ACK came.
    one = PACKET * 8e9 / forward + HEADERS * 8e9 / reverse + rtt
    begin = times[first] * 1e9 - one
    # Between the tenths of a millisecond, at which most ACKs come.
    moments = [k * 500_000_000 + 12_345 for k in range(1, 7)]
    want = acknowledged(rtt, forward, reverse, moments, threshold)
    for moment, packets in zip(moments, want):
        at = max(i for i, time in enumerate(times) if time * 1e9 <= begin + moment)
        got = bytes_[at] // (PACKET - HEADERS)
        if got != packets:
            return f"{got} packets are acknowledged after {moment / 1e9:.3f} s, counted {packets}"
    return None
