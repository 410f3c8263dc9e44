"""Recovery without SACK: a sender by RFC 5681, RFC 6582 (NewReno) and RFC 3042 (limited transmit), segment by
segment, beside the captures of the simulator. Each data segment must leave at the same time, to the
nanosecond, with the same number.

What the RFCs leave open: after a full acknowledgment cwnd is the smaller of ssthresh and the flight with one
segment more (RFC 6582 section 3.2, step 3, the first choice), and that acknowledgment counts as one segment
towards the next increase, as in Linux; congestion avoidance counts bytes (RFC 5681 section 3.1); windows are
whole segments, so half of an odd flight is rounded down, as in Linux.
"""

import heapq
import os
import struct
import subprocess
import tempfile

import link

HEADERS = 40
MSS = 1000
INITIAL = 10
# Frames of the handshake on the way out; losses are numbered from 1.
HANDSHAKE = 3


class Sender:
    """Numbers are of segments, from 0 on. `cwnd` is in segments."""

    def __init__(self, total, ssthresh):
        self.total, self.ssthresh, self.cwnd, self.counted = total, ssthresh, INITIAL, 0
        self.una = self.next = self.duplicates = 0
        self.recover, self.recovers = 0, False
        self.out = []

    def flight(self):
        return self.next - self.una

    def transmit(self, extra=0):
        """Sends what the window allows; `extra` segments are those of limited transmit."""
        while self.next < self.total and self.flight() < self.cwnd + extra:
            self.out.append(self.next)
            self.next += 1

    def acknowledge(self, number):
        """The receiver expects `number`. Returns what leaves for that."""
        self.out = []
        if number > self.una:
            self.advance(number)
        elif self.flight():
            self.duplicate()
        return self.out

    def advance(self, number):
        acked, self.una, self.duplicates = number - self.una, number, 0
        if not self.recovers:
            self.grow(acked)
        elif number >= self.recover:
            self.recovers, self.cwnd, self.counted = False, self.exit_window(), 1
        else:
            self.out.append(number)
            self.cwnd += 1 - acked
        self.transmit()

    def exit_window(self):
        return min(self.ssthresh, max(self.flight(), 1) + 1)

    def grow(self, acked):
        if self.cwnd < self.ssthresh:
            self.cwnd += 1
            return
        self.counted += acked
        if self.counted >= self.cwnd:
            self.counted -= self.cwnd
            self.cwnd += 1

    def duplicate(self):
        self.duplicates += 1
        if self.recovers:
            self.cwnd += 1
            self.transmit()
        elif self.duplicates < 3:
            self.transmit(self.duplicates)
        elif self.duplicates == 3 and self.una >= self.recover:
            # What limited transmit has sent does not count (RFC 5681 section 3.2).
            flight = min(self.flight(), self.cwnd)
            self.ssthresh = max(flight // 2, 2)
            self.recover, self.recovers, self.cwnd = self.next, True, self.ssthresh + 3
            self.out.append(self.una)
            self.transmit()


def sent(total, ssthresh, rate, rtt, lost):
    """Data segments as (time since the first, number); the transmissions in `lost`, counted from 0, do not arrive."""
    sender, received, expected = Sender(total, ssthresh), set(), 0
    log, events, order = [], [], 0
    # The last segment of the handshake leaves right before the data.
    free, left = divmod((HEADERS + link.ETHERNET) * 8_000_000_000, rate)

    def leave(now, numbers):
        nonlocal order, free, left
        for number in numbers:
            if len(log) not in lost:
                if free <= now:
                    free, left = now, 0
                bits = (MSS + HEADERS + link.ETHERNET) * 8_000_000_000 + left
                free, left = free + bits // rate, bits % rate
                heapq.heappush(events, (free + rtt, order, number))
                order += 1
            log.append((now, number))

    sender.transmit()
    leave(0, sender.out)
    while events:
        now, _, number = heapq.heappop(events)
        received.add(number)
        while expected in received:
            expected += 1
        leave(now, sender.acknowledge(expected))
    return log


def captured(path):
    """Data segments of a capture as (time since the first, number)."""
    with open(path, "rb") as file:
        data = file.read()
    unit = 1 if struct.unpack("<I", data[:4])[0] == 0xA1B23C4D else 1000
    at, segments = 24, []
    while at < len(data):
        seconds, parts, length, _ = struct.unpack("<IIII", data[at : at + 16])
        frame = data[at + 16 : at + 16 + length]
        at += 16 + length
        bytes_ = struct.unpack(">H", frame[16:18])[0] - HEADERS
        if bytes_ == MSS:
            segments.append((seconds * 10**9 + parts * unit, struct.unpack(">I", frame[38:42])[0]))
    first_time, first = segments[0]
    return [(time - first_time, (number - first) % 2**32 // MSS) for time, number in segments]


def simulated(weir, total, ssthresh, rate, rtt, lost):
    """The segments that the simulator's sender sends."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "lost"), "w", encoding="ascii") as file:
            file.write(" ".join(str(number + HANDSHAKE) for number in sorted(lost)))
        file = os.path.join(directory, "e.toml")
        with open(file, "w", encoding="ascii") as out:
            out.write(experiment(total, ssthresh, rate, rtt))
        done = subprocess.run([weir, "sim", file, "--pcap", directory], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return captured(os.path.join(directory, "clients.pcap"))


def experiment(total, ssthresh, rate, rtt):
    """A transfer over a path that loses what `lost` says."""
    return f"""
name = "recovery"
duration = "20s"
[path]
rtt = "{rtt}ns"
[path.wan.out]
rate = "{rate}bit"
queue = "100000p"
loss_frames = "lost"
[path.wan.back]
[tcp]
cc = "reno"
recovery = "newreno"
mss = {MSS}
initial_ssthresh = {ssthresh}
initial_window = {INITIAL}
delayed_ack = 1
quick_acks = 0
push_acks = false
timestamps = false
min_rto = "1s"
rwnd = "1GB"
[[flow]]
id = "f"
bytes = {total * MSS}
"""


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("recovery", seed)
    rate, rtt = rng.choice([10_000_000, 20_000_000, 50_000_000]), rng.choice([40, 100]) * 1_000_000
    ssthresh, total = rng.randint(12, 40), 600
    first = rng.randint(60, 300)
    lost = {first} | {first + rng.randint(1, 10) for _ in range(rng.choice([0, 0, 1, 2, 3]))}
    want = sent(total, ssthresh, rate, rtt, lost)
    got = simulated(weir, total, ssthresh, rate, rtt, lost)
    for k, (ours, theirs) in enumerate(zip(got, want)):
        if ours != theirs:
            return f"transmission {k}: the simulator has {ours}, the reference {theirs}; lost {sorted(lost)}"
    return None if len(got) == len(want) else f"{len(got)} transmissions, the reference has {len(want)}"
