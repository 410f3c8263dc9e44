#!/usr/bin/env python3
"""Overhead of sweeps: the same runs by a plain loop in two processes, and by `weir.sweep`, in alternating halves.

    target/python/bin/python py/benches/sweep.py [--runs 1000] [--halves 4] [--duration 80s] [--record FILE]
    target/python/bin/python py/benches/sweep.py --kill FOLDER [--runs 1000] [--duration 80s]

A half is RUNS / HALVES runs by the loop and as many by each kind of sweep: the local pool of two threads, and
two Dask workers that keep results in a store. Times are in seconds of the whole half: elapsed, and of the
processors in all processes. The overhead of a run is what the sweep takes more than the loop, by run. With
`--record` the halves are added to a file, and the figures are of all in it: a long measurement has pieces.

With `--kill`, two Dask workers make RUNS runs that are not in the folder yet, and one of them is killed when a
third is made. The runs that were kept are counted, by workers and in the folder.

The cluster watches itself less often than Dask's default, as docs/python.md advises; `--default` leaves it.
"""

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import weir

#: Dask's own looks at its processes: no profile by stacks, of which it takes 100 a second, and fewer ticks.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "2s"}

#: Two flows at 300 Mbit/s: about half a second of a processor for 80 simulated seconds.
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


@contextmanager
def two_workers(default):
    """Start a cluster, and give its client."""
    import dask
    from dask.distributed import Client, LocalCluster

    with dask.config.set({} if default else QUIET):
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                yield client


def overhead(args):
    """Measure, and print a line for each kind."""
    record = Path(args.record) if args.record else None
    halves = [json.loads(line) for line in record.read_text().splitlines()] if record and record.exists() else []
    before = sum(half["runs"] for half in halves)
    with two_workers(args.default) as client:
        workers = list(client.run(os.getpid).values())
        kinds = {"loop": plain, "pool": pool, "dask": by_workers(client)}
        a_half = args.runs // args.halves
        for number in range(args.halves):
            first = before + number * a_half + 1
            seeds = list(range(first, first + a_half))
            half = {"runs": a_half}
            order = list(kinds.items())
            for name, make in order if len(halves) % 2 == 0 else reversed(order):
                processor, began = spent(workers), time.monotonic()
                make(seeds, args.duration)
                half[name] = [time.monotonic() - began, spent(workers) - processor]
            halves.append(half)
            if record:
                with record.open("a") as file:
                    file.write(json.dumps(half) + "\n")
    runs = sum(half["runs"] for half in halves)
    one = sum(half["loop"][1] for half in halves) / runs
    print(f"{runs} runs of {one * 1e3:.0f} ms of a processor, {len(halves)} halves of each kind")
    for name in ("pool", "dask"):
        line = []
        for kind, of in (("elapsed", 0), ("processor", 1)):
            both = [(half[name][of], half["loop"][of]) for half in halves]
            ratio = sum(sweep for sweep, _ in both) / sum(base for _, base in both)
            each = ", ".join(f"{sweep / base:.3f}" for sweep, base in both)
            more = sum(sweep - base for sweep, base in both) / runs * 1e3
            line.append(f"{kind} {ratio:.3f} of the loop ({each}), {more:+.1f} ms a run")
        print(f"{name}: " + "; ".join(line))


def killed(args):
    """Make runs of which a worker is killed, and print how many there are."""
    from dask.distributed import WorkerPlugin

    folder = Path(args.kill).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "kept.log"
    kept = lambda: log.read_text().split() if log.exists() else []

    class Count(WorkerPlugin):
        """Notes each run that a worker keeps, also of the worker that comes after the killed one."""

        def setup(self, worker):
            from weir import _store

            whole = _store.Store.put

            def put(store, key, run):
                whole(store, key, run)
                with open(log, "a", encoding="ascii") as file:
                    file.write(key + "\n")

            _store.Store.put = put

    before = len(kept())
    with two_workers(args.default) as client:
        client.register_plugin(Count())

        def kill():
            while len(kept()) < before + args.runs // 3:
                time.sleep(0.05)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        seeds = list(range(1, before + args.runs + 1))
        runs = weir.sweep(
            EXPERIMENT, {"seed": seeds}, client=client, store=f"file://{folder}", duration=args.duration
        )
        killer.join()
    failed = sum(run.error is not None for run in runs)
    files = list(folder.glob("*.parquet"))
    keys = kept()
    print(f"{len(runs)} runs, {failed} failed; {len(files)} files, written {len(keys)} times, "
          f"{len(keys) - len(set(keys))} of them twice; a worker was killed after {args.runs // 3} of {args.runs}")


def main():
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--halves", type=int, default=4)
    parser.add_argument("--duration", default="80s")
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--kill", metavar="FOLDER")
    parser.add_argument("--default", action="store_true", help="leave Dask's settings as they are")
    args = parser.parse_args()
    killed(args) if args.kill else overhead(args)


if __name__ == "__main__":
    main()
