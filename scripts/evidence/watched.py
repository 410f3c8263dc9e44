#!/usr/bin/env python3
"""Throughput of a shaped router while ten clients read the stream of the page, beside the same without them.

scripts/evidence/watched.py [--pairs N] [--seconds N]

Both are measured alternately, with four uploads at rates that no flow reaches. The median of the ratios must be at
least 0.98. Needs root, iperf3 and curl, and a machine without other work.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from network import SERVER, Network, shaped, stop

CLIENTS, LEAST = 10, 0.98


def throughput(network, seconds):
    said = network.run("client", "iperf3", "-c", SERVER, "-P", "4", "-t", seconds, "-J")
    return json.loads(said)["end"]["sum_received"]["bits_per_second"]


def processor(process):
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(network, seconds):
    """Throughput with clients, and the messages that the least lucky one of them got."""
    stream = "http://127.0.0.1:8650/api/v1/stream"
    clients = [network.start("router", "curl", "-sN", stream, stdout=subprocess.PIPE) for _ in range(CLIENTS)]
    time.sleep(0.5)
    rate = throughput(network, seconds)
    got = []
    for client in clients:
        client.terminate()
        got.append(client.communicate()[0].count("\ndata: "))
        network.processes.remove(client)
    return rate, min(got)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    ratios, events = [], []
    with Network(offloads=True) as network, tempfile.TemporaryDirectory() as work:
        gateway = network.gateway(work, shaped("20Gbit", "up"))
        page = network.dashboard()
        network.start("server", "iperf3", "-s", stdout=subprocess.DEVNULL)
        time.sleep(1)
        throughput(network, args.seconds)
        used, begin = processor(page), time.monotonic()
        for turn in range(args.pairs):
            first = throughput(network, args.seconds) if turn % 2 else None
            with_clients, got = watched(network, args.seconds)
            alone = first or throughput(network, args.seconds)
            ratios.append(with_clients / alone)
            events.append(got)
        used = (processor(page) - used) / (time.monotonic() - begin)
        stop(gateway)
    median = statistics.median(ratios)
    print(f"watched: {median:.3f} of the throughput without clients ({min(ratios):.3f} to {max(ratios):.3f}), "
          f"{CLIENTS} clients with {statistics.median(events):g} messages each in {args.seconds} s, "
          f"{100 * used:.2f} % of a processor for the page")
    if median < LEAST or statistics.median(events) < args.seconds - 1:
        sys.exit(f"watched: expected {LEAST}")


main()
