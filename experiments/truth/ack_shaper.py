"""The ACK shaper's pseudocode (Vanini, Pan, Taheri and Marinshaw 2019, figs 1 and 5) with a sender in slow start,
tick by tick, beside `preset = "ack-shaper-published"` of the simulator.

A tick every 10 ms moves the last number sent by a step, or to the last number received where less is there. The
step is half while `MovingAvgBytesSent` is found above two steps and not yet below one half. What the average is
of can be read in two ways:

- "progress": bytes that were acknowledged since the last tick. The text has "the real rate of incoming ACKs".
- "backlog": the last number received less the last one sent, as the line is printed.

With the backlog a window larger than the path never leaves: what the path does not hold waits for good, the average
stays above two steps, and the flow has half of its rate until the end. So the simulator follows the text. A full window answers
half steps with half of the rate, so the exit as printed, below one half, is left to the noise of whole segments. Here as
there an average within 5 % of one half ends it.

The sender grows by what is acknowledged until its window is the receiver's. What it sends comes back a round trip
later.
"""

import json
import os
import subprocess
import tempfile

import link

TICK = 0.01
MSS = 1448
INITIAL = 10 * MSS
EXIT = 0.5 * 1.05
# Seconds, and times between which bytes are compared. Windows that double are counted in ticks here and in ACKs there, so
# one is up to two round trips ahead of the other from then on.
END = 20.0
TIMES = [3.0, 5.0, 8.0, 12.0, 16.0, 19.9]


def shaper(rate, rtt, window, reading="progress", end=END):
    """Bytes that the gateway has acknowledged, by the time of each tick, from the first ACK of data on."""
    step = rate / 8 * TICK
    cwnd, received, sent, average, slow = float(INITIAL), 0.0, 0.0, 0.0, False
    coming, out, left = {}, [], 0.0
    back = max(1, round(rtt / TICK))
    coming[0] = float(INITIAL)
    for tick in range(round(end / TICK)):
        progress = coming.pop(tick, 0.0)
        received += progress
        average = 0.7 * average + 0.3 * (progress if reading == "progress" else received - sent)
        if average > 2 * step:
            slow = True
        elif average < EXIT * step * (1 - 1e-9):  # not by rounding
            slow = False
        number = min(received - sent, step / 2 if slow else step)
        sent += number
        growth = min(number, window - cwnd)
        cwnd += growth
        left += number + growth
        whole = left // MSS * MSS
        left -= whole
        coming[tick + back] = coming.get(tick + back, 0.0) + whole
        out.append(sent)
    return out


def simulated(weir, rate, rtt, window):
    """Bytes acknowledged to the simulated sender at each of the times, which count from the first ACK of data."""
    first = 2 * rtt
    text = f"""
name = "t"
duration = "{END + 1:.0f}s"
series = ["acked"]
path.rtt = "{rtt * 1000:.0f}ms"
tcp = {{ cc = "reno", abc = true, rwnd = {window}, delayed_ack = 1, timestamps = true }}
gateway.class = [{{ name = "a", ack = {{ preset = "ack-shaper-published", flow_rate = "{rate:.0f}bit" }} }}]
flow = [{{ id = "a" }}]
expect = [{{ what = "flow.a.0.bytes", op = "at_least", target = 1 }}]
"""
    with tempfile.TemporaryDirectory() as folder:
        file, result = os.path.join(folder, "t.toml"), os.path.join(folder, "t.json")
        with open(file, "w") as out:
            out.write(text)
        done = subprocess.run([weir, "sim", file, "--json", result], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        with open(result) as lines:
            series = json.load(lines)["series"]["a.0"]
    acked = list(zip(series["t_s"], series["acked_bytes"]))
    return [max((n or 0 for t, n in acked if t <= first + time), default=0) for time in TIMES]


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("ack_shaper", seed)
    rate = rng.choice([2e6, 5e6, 10e6, 20e6, 40e6])
    rtt = rng.choice([0.02, 0.04, 0.1, 0.2])
    path = rate / 8 * rtt
    window = int(path * 2 + rng.uniform(100, 400) * rate / 8 * TICK) // MSS * MSS
    expected = shaper(rate, rtt, window)
    backlog = shaper(rate, rtt, window, "backlog")
    # Both readings must differ, or this compares nothing: half of the rate in the last two seconds.
    last = [(n[-1] - n[-201]) / (2 * rate / 8) for n in (expected, backlog)]
    if not (last[0] > 0.98 and last[1] < 0.52):
        return f"the readings have {last} of the rate in the end"
    found = simulated(weir, rate, rtt, window)
    wanted = [expected[min(len(expected) - 1, int(time / TICK))] for time in TIMES]
    for n in range(1, len(TIMES)):
        want, there = wanted[n] - wanted[n - 1], found[n] - found[n - 1]
        if abs(there - want) > 0.02 * want + 2 * rate / 8 * TICK + 4 * MSS:
            between = f"from {TIMES[n - 1]} to {TIMES[n]} s"
            return f"{rate:.0f} bit/s, {rtt} s, {window} bytes: {there} acknowledged {between}, expected {want:.0f}"
    return None
