#!/usr/bin/env python3
"""Runs references against the simulator with random inputs: run.py WEIR COUNT [NAME ...]

Prints a line for each reference, with the first differences, and ends with exit code 1 if there are any.
"""

import importlib
import os
import sys
from concurrent.futures import ProcessPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
NAMES = [
    "codel",
    "fq_codel",
    "dualpi2",
    "red",
    "tree",
    "priorities",
    "delivery_trace",
    "recovery",
    "slow_reverse",
    "tss",
    "ack_shaper",
    "chirp_round",
]
SHOWN = 3


def one(name, weir, seed):
    return importlib.import_module(name).case(weir, seed)


def main():
    weir, count, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:] or NAMES
    worst = 0
    with ProcessPoolExecutor() as pool:
        for name in names:
            found = list(pool.map(one, [name] * count, [weir] * count, range(count), chunksize=4))
            different = [(seed, why) for seed, why in enumerate(found) if why]
            print(f"{name}: {count} cases, {len(different)} differ", flush=True)
            for seed, why in different[:SHOWN]:
                print(f"  case {seed}: {why}", flush=True)
            worst = max(worst, len(different))
    sys.exit(1 if worst else 0)


if __name__ == "__main__":
    main()
