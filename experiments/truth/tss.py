"""The time series of snapshots of "PostACK" (appendices B and C), counted packet by packet, beside `weir
model tss`.

A flow loses one packet of every n. Its window grows by one packet for each window that is acknowledged.
Behind a queue of its own, packets beyond the pipe wait, and leave at the flow's rate; with a window sized to
the pipe, nothing waits. After a loss what waits drains, a round trip later the repair is acknowledged, and
half the flight is left. The model adds up areas and not packets, so it may be off by 1.25 packets of a
window: the window climbs in steps, on average half a packet below the model's line, and the step in which a
cycle ends moves its peak by up to a packet, of which the mean window is three quarters. docs/tss-model.md
says what both leave out of a transfer.
"""

import json
import subprocess

import link

# Packets of a window.
ALLOWED = 1.25

def settled(pipe, losses, sized):
    """Packets of a round trip in the end, with one loss of so many packets."""
    window, result = 1.0, 0.0
    for _ in range(100):
        sent = time = acknowledged = 0.0
        while True:
            waiting = 0.0 if sized else max(0.0, window - max(pipe, window / 2))
            if sent + waiting >= losses:
                break
            sent += 1
            time += 1 / min(window, pipe)
            acknowledged += 1
            if acknowledged >= window:
                acknowledged -= window
                window += 1
        time += waiting / pipe + 1
        result = losses / time
        window = max(1.0, (min(window, pipe) if sized else window) / 2)
    return result


def case(weir, seed):
    """A difference in words, or None."""
    rng = link.generator("tss", seed)
    rate, rtt, segment = rng.choice([400, 800, 1600]), rng.choice([50, 100, 200]), rng.choice([1000, 1250])
    pipe = rate * 1000 / 8 * rtt / 1000 / segment
    losses = rng.randint(30, 2000)
    words = ["model", "tss", "--rate", f"{rate}kbit", "--rtt", f"{rtt}ms", "--segment", str(segment)]
    words += ["--loss", f"{1 / losses:.12f}", "--json", "-"]
    done = subprocess.run([weir, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    row = json.loads(done.stdout)["rows"][0]
    for name, sized in (("queue", False), ("sized", True)):
        want = settled(pipe, losses, sized) / pipe
        allowed = ALLOWED * want / min(row["window_packets"], pipe)
        if abs(row[name] - want) > allowed:
            return f"{name}: the model has {row[name]:.4f} of the rate, counted {want:.4f} (pipe {pipe}, 1/{losses})"
    return None
