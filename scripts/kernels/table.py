"""Prints the table of `beside` from results: table.py RESULT.json..."""

import json
import sys
from pathlib import Path
from statistics import median

HEAD = "| Run | Up: TCP, QUIC | Down: TCP, QUIC | Talk p50, p99 | Hear p50, p99 | A page, median |"


def row(path):
    result = json.loads(path.read_text())
    groups = {}
    for flow in result["flows"]:
        groups.setdefault(flow["id"].split(".")[0], []).append(flow)

    def mbit(group):
        flows = groups.get(group, [])
        return sum(8e-6 * flow["bytes"] / (flow["end_s"] - flow["start_s"]) for flow in flows)

    def call(group):
        delay = groups[group][0]["delay_us"]
        return f"{delay['p50'] / 1e3:.1f}, {delay['p99'] / 1e3:.1f}"

    pages = [flow["fct_s"] for flow in groups["page"] if flow["fct_s"]]
    return [
        path.stem,
        f"{mbit('upload'):.2f}, {mbit('quic-up'):.2f}",
        f"{mbit('download'):.2f}, {mbit('quic'):.2f}",
        call("talk"),
        call("hear"),
        f"{median(pages):.2f} s",
    ]


print(HEAD)
print("| --- | --- | --- | --- | --- | --- |")
for path in sorted(Path(argument) for argument in sys.argv[1:]):
    print("| " + " | ".join(row(path)) + " |")
