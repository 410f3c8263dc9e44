"""The rounds of paced chirping as published (Misund and Briscoe 2019, section II and fig. 3), from the text alone, beside a
capture of `chirp = "published"` in the simulator.

- The first round is two bursts of five packets, half a round trip apart (section IV.B: "the first two bursts of 5").
- A round has twice the packets of the one before (gain 2), in chirps of 5, then 8, then 16, spread over the round trip.
- Gaps within a chirp are an arithmetic series that falls from twice the estimate to nothing (geometry 2), so that their mean is
  the estimate. In the second round that is the time of a packet at the bottleneck, from the ACKs of the bursts.

Later rounds have estimates of their own, which the text leaves to pathChirp; of them the series is checked, not the mean.
"""

import os
import struct
import subprocess
import tempfile

import link

FRAME = 1514
# Longest part of a round trip within a chirp, and what a timer rounds, in nanoseconds.
GUARD, ROUNDING = 0.02, 1500


def departures(weir, rate, rtt):
    """Times at which the sender's segments of data leave, in nanoseconds."""
    text = f"""
name = "t"
duration = "{round(rtt * 6000)}ms"
path = {{ rtt = "{round(rtt * 1000)}ms", wan.out = {{ rate = "{rate}bit", queue = "2000p" }} }}
tcp = {{ cc = "chirp", chirp = "published", rwnd = "16MiB", delayed_ack = 1 }}
flow = [{{ id = "a" }}]
expect = [{{ what = "flow.a.0.bytes", op = "at_least", target = 1 }}]
"""
    with tempfile.TemporaryDirectory() as folder:
        file, captures = os.path.join(folder, "t.toml"), os.path.join(folder, "pcap")
        with open(file, "w") as out:
            out.write(text)
        done = subprocess.run([weir, "sim", file, "--pcap", captures], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        with open(os.path.join(captures, "clients.pcap"), "rb") as capture:
            data = capture.read()
    unit = 1 if struct.unpack("<I", data[:4])[0] == 0xA1B23C4D else 1000
    times, at = [], 24
    while at < len(data):
        seconds, part, stored, length = struct.unpack("<IIII", data[at : at + 16])
        at += 16 + stored
        if length == FRAME:
            times.append(seconds * 1_000_000_000 + part * unit)
    return times


def chirps(times, rtt):
    """The trains: packets less than a part of the round trip behind each other."""
    trains = [[times[0]]]
    for before, time in zip(times, times[1:]):
        if time - before > GUARD * rtt * 1e9:
            trains.append([])
        trains[-1].append(time)
    return trains


def series(train):
    """By how much the gaps of a train differ from a series that falls to nothing evenly, and their mean."""
    gaps = [b - a for a, b in zip(train, train[1:])]
    first, last = gaps[0], len(gaps) - 1
    off = max(abs(gap - first * (last - n) / last) for n, gap in enumerate(gaps))
    return off, sum(gaps) / len(gaps)


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("chirp_round", seed)
    rate = rng.choice([50, 100, 200, 400]) * 1_000_000
    # Rounds of 10, 20, 40 and 80 packets leave room for a guard behind each chirp.
    rtt = rng.randint(200, 600) * FRAME * 8 / rate
    rtt = round(rtt, 3) or 0.001
    trains = chirps(departures(weir, rate, rtt), rtt)
    sizes = [len(train) for train in trains]
    if sizes[:11] != [5] * 6 + [8] * 5:
        return f"{rate} bit/s, {rtt} s: chirps of {sizes[:11]}"
    if abs(trains[1][0] - trains[0][0] - rtt * 5e8) > 0.02 * rtt * 1e9:
        return f"bursts are {(trains[1][0] - trains[0][0]) / 1e6} ms apart, of {rtt} s"
    packet = FRAME * 8e9 / rate
    for n, train in enumerate(trains[2:11]):
        off, mean = series(train)
        if off > ROUNDING:
            return f"chirp {n}: {off / 1000} us off an even series"
        if n < 4 and abs(mean - packet) > 0.02 * packet:
            return f"chirp {n}: gaps of {mean / 1000} us on average, of {packet / 1000} that a packet takes"
    for begin, count in ((2, 4), (6, 5)):
        apart = [b[0] - a[0] for a, b in zip(trains[begin : begin + count], trains[begin + 1 : begin + count])]
        if any(abs(time - rtt * 1e9 / count) > 0.06 * rtt * 1e9 for time in apart):
            return f"chirps of a round are {[time / 1e6 for time in apart]} ms apart, {count} in {rtt} s"
    return None
