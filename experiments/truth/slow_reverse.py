"""Slow start behind a slow reverse channel without a filter, by the arithmetic of Barakat and Altman, "On ACK
Filtering on a Slow Reverse Channel" (2000), section 2: the channel carries mu ACKs per second. Each ACK of a
new packet lets two packets leave while the window grows by one with each ACK, so once the channel is full, 2
mu packets per second are acknowledged by mu ACKs per second if each packet is acknowledged, and (d + 1) mu if
every d-th one is.

Counted packet by packet: the sender answers each ACK at once, the receiver acknowledges each packet, and ACKs
leave the channel one after the other. The times of ACKs are compared with what the simulator's sender has
acknowledged, to the packet.
"""

import link
from tree import simulate

HEADERS = 40
PACKET = 1000


def acknowledged(rtt, forward, reverse, until):
    """Packets that are acknowledged at the times `until`, in nanoseconds from the first packet on."""
    packet, ack = PACKET * 8_000_000_000 / forward, HEADERS * 8_000_000_000 / reverse
    out_free = back_free = 0.0
    arrives = []
    count, sent, i = 0, 1, 0
    counts = []

    def send(now):
        nonlocal out_free, back_free
        out_free = max(now, out_free) + packet
        back_free = max(out_free + rtt / 2, back_free) + ack
        arrives.append(back_free + rtt / 2)

    send(0.0)
    for time in until:
        while arrives[i] <= time:
            count += 1
            send(arrives[i])
            send(arrives[i])
            sent += 2
            i += 1
        counts.append(count)
    return counts


def experiment(rtt_ms, forward, reverse, seconds):
    """The paper's scenario: one transfer in slow start throughout."""
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
    reverse = rng.choice([50_000, 80_000, 100_000, 200_000])
    result = simulate(weir, experiment(rtt_ms, forward, reverse, 4))
    series = next(iter(s for s in result["series"].values() if "acked_bytes" in s))
    times, bytes_ = series["t_s"], series["acked_bytes"]
    first = next(i for i, acked in enumerate(bytes_) if acked > 0)
    rtt = rtt_ms * 1_000_000
    # The first packet was sent a round trip before its ACK came.
    one = PACKET * 8e9 / forward + HEADERS * 8e9 / reverse + rtt
    begin = times[first] * 1e9 - one
    moments = [begin + k * 500_000_000 for k in range(1, 7)]
    want = acknowledged(rtt, forward, reverse, [moment - begin for moment in moments])
    for moment, packets in zip(moments, want):
        at = max(i for i, time in enumerate(times) if time * 1e9 <= moment)
        got = bytes_[at] // (PACKET - HEADERS)
        if abs(got - packets) > 1:
            return f"{got} packets are acknowledged after {moment / 1e9:.3f} s, counted {packets}"
    return None
