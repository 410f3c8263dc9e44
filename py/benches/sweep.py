#!/usr/bin/env python3
"""Overhead of sweeps: the same runs by a plain loop in two processes, and by `weir.sweep`, in alternating halves.

    target/python/bin/python py/benches/sweep.py [--runs 1000] [--halves 4] [--duration 120s]

A half is RUNS / HALVES runs by the loop and as many by each kind of sweep: the local pool of two threads, and
two Dask workers that keep results in a store. Times are in seconds of the whole half: elapsed, and of the
processors in all processes. The overhead of a run is what the sweep takes more than the loop, by run.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time

import weir

#: Two flows at 300 Mbit/s: about half a second of a processor for 120 simulated seconds.
EXPERIMENT = {
    "name": "overhead",
    "path": {"wan": {"rate": "300Mbit", "delay": "10ms", "queue": "1bdp", "loss": "0.01%"}},
    "flow": [{"id": "a", "count": 2}],
}


def loop(seeds, duration):
    """Make runs one after the other."""
    for seed in seeds:
        assert weir.sim(EXPERIMENT, duration=duration, seed=seed).error is None


def plain(seeds, duration):
    """Make runs in two processes, half of them in each."""
    halves = [multiprocessing.Process(target=loop, args=(seeds[part::2], duration)) for part in (0, 1)]
    for process in halves:
        process.start()
    for process in halves:
        process.join()
        assert process.exitcode == 0


def pool(seeds, duration):
    """Make runs by the local pool."""
    runs = weir.sweep(EXPERIMENT, {"seed": seeds}, jobs=2, duration=duration)
    assert len(runs) == len(seeds) and all(run.error is None for run in runs)


def by_workers(client):
    """Return a function that makes runs by the workers of a client, and keeps them."""

    def make(seeds, duration):
        with tempfile.TemporaryDirectory() as folder:
            runs = weir.sweep(
                EXPERIMENT, {"seed": seeds}, client=client, store=f"file://{folder}", duration=duration
            )
        assert len(runs) == len(seeds) and all(run.error is None for run in runs)

    return make


def spent(processes):
    """Return the processor time of this process, those it has ended, and these."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for process in processes:
        with open(f"/proc/{process}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def main():
    """Measure, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--halves", type=int, default=4)
    parser.add_argument("--duration", default="120s")
    args = parser.parse_args()
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = list(client.run(os.getpid).values())
        kinds = {"loop": plain, "pool": pool, "dask": by_workers(client)}
        times = {name: [] for name in kinds}
        a_half = args.runs // args.halves
        for half in range(args.halves):
            seeds = list(range(half * a_half + 1, (half + 1) * a_half + 1))
            order = list(kinds.items())
            for name, make in order if half % 2 == 0 else reversed(order):
                processor, began = spent(workers), time.monotonic()
                make(seeds, args.duration)
                times[name].append((time.monotonic() - began, spent(workers) - processor))
        one = statistics.mean(processor for _, processor in times["loop"]) / a_half
        print(f"{a_half * args.halves} runs of {one * 1e3:.0f} ms of a processor, {args.halves} halves of each kind")
        for name in ("pool", "dask"):
            line = []
            for kind, of in (("elapsed", 0), ("processor", 1)):
                both = [(sweep[of], base[of]) for sweep, base in zip(times[name], times["loop"])]
                ratio = sum(sweep for sweep, _ in both) / sum(base for _, base in both)
                each = ", ".join(f"{sweep / base:.3f}" for sweep, base in both)
                more = sum(sweep - base for sweep, base in both) / (a_half * args.halves) * 1e3
                line.append(f"{kind} {ratio:.3f} of the loop ({each}), {more:+.1f} ms a run")
            print(f"{name}: " + "; ".join(line))


if __name__ == "__main__":
    main()
