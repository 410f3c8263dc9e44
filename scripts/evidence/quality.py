#!/usr/bin/env python3
"""Compares the quality that a gateway reports with its senders' own counts, and with tshark's of captures.

scripts/evidence/quality.py [--seconds N] [--keep DIRECTORY] [CASE…]

Four transfers go through a gateway between two emulated paths. Packets are captured on both sides of the gateway.
Retransmissions that Weir reports must be within 1 % of the sender's (`tcpi_total_retrans`) where nothing is lost
before Weir, and within 1 % of tshark's. Round-trip times must be within 1 ms or 5 % of tshark's. Needs root and
tshark.
"""

import argparse
import collections
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from network import SERVER, Network, shaped, stop

FLOWS = 4
TRIES = 3
# Paths of the two ends: `out` leaves the host, `back` comes to it.
PATH = """[ports]
dev = "eth0"
[path.wan.out]
delay = "{delay}ms"
{out}
[path.wan.back]
delay = "{delay}ms"
{back}
"""
CLIENT_MS, SERVER_MS = 4, 15
LOSS = 'loss = "1%"'
LATE = 'reorder = "10%"\nreorder_by = "2800us"'
# Name: direction of data, and lines of the client's and the server's path.
CASES = {
    "download": ("down", {}, {}),
    "upload": ("up", {}, {}),
    "download, lost behind": ("down", {"back": LOSS}, {}),
    "upload, lost behind": ("up", {}, {"back": LOSS}),
    "download, lost before": ("down", {}, {"out": LOSS}),
    "upload, lost before": ("up", {"out": LOSS}, {}),
    "download, late": ("down", {}, {"out": LATE}),
}
# Fields of TCP_INFO: their offsets in bytes.
TOTAL_RETRANS = 100
FIELDS = ["frame.time_epoch", "tcp.stream", "ip.src", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len",
          "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.ack_rtt",
          "tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"]


class Transfer:
    """A connection from the client to the server, with data one way."""

    def __init__(self, network, listener, way, seconds):
        near = network.socket("client")
        near.connect((SERVER, listener.getsockname()[1]))
        far, _ = listener.accept()
        self.port = near.getsockname()[1]
        self.sender, self.receiver = (far, near) if way == "down" else (near, far)
        self.threads = [threading.Thread(target=self.send, args=(seconds,)), threading.Thread(target=self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self, seconds):
        until = time.monotonic() + seconds
        block = bytes(65536)
        while time.monotonic() < until:
            self.sender.send(block)

    def receive(self):
        while self.receiver.recv(1 << 20):
            pass

    def retransmissions(self):
        """Segments that the sender has sent again, when all of its data is acknowledged."""
        self.threads[0].join()
        while self.info()[1] > 0:
            time.sleep(0.1)
        time.sleep(0.5)
        return self.info()[0]

    def info(self):
        told = self.sender.getsockopt(6, 11, 232)
        # Fields tcpi_total_retrans, tcpi_unacked and tcpi_notsent_bytes.
        total, unacked, unsent = (struct.unpack_from("=I", told, at)[0] for at in (TOTAL_RETRANS, 24, 144))
        return total, unacked + unsent

    def close(self):
        self.sender.close()
        self.threads[1].join()
        self.receiver.close()


def dissect(file):
    """Packets of a capture, by tshark: a row of fields for each."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    done = subprocess.run(["tshark", "-n", "-r", file, "-T", "fields", *fields, "-E", "separator=|"],
                          capture_output=True, text=True, check=True)
    return [dict(zip(FIELDS, line.split("|"))) for line in done.stdout.splitlines()]


class Seen:
    """What tshark says of a capture, by the client's port."""

    def __init__(self, file, way):
        self.again, self.late = collections.Counter(), collections.Counter()
        self.acked, self.echoed = collections.defaultdict(list), collections.defaultdict(list)
        asked = {}
        for row in dissect(file):
            from_client = row["ip.src"].startswith("10.1.")
            port = int(row["tcp.srcport"] if from_client else row["tcp.dstport"])
            if from_client == (way == "up"):
                self.again[port] += bool(row["tcp.analysis.retransmission"])
                self.late[port] += bool(row["tcp.analysis.out_of_order"])
                # The first data that echoes a timestamp ends a round trip to the sender.
                sent = asked.pop((port, row["tcp.options.timestamp.tsecr"]), None)
                if sent is not None and int(row["tcp.len"]) > 0:
                    self.echoed[port].append(float(row["frame.time_epoch"]) - sent)
            else:
                asked.setdefault((port, row["tcp.options.timestamp.tsval"]), float(row["frame.time_epoch"]))
                if row["tcp.analysis.ack_rtt"]:
                    self.acked[port].append(float(row["tcp.analysis.ack_rtt"]))


class Judged:
    """Values beside what they should be, and those that are not."""

    def __init__(self, case):
        self.case, self.faults = case, []

    def beside(self, what, found, expected, allowed, unit=""):
        holds = abs(found - expected) <= allowed
        print(f"  {what}: {found:g}{unit} beside {expected:g}{unit}{'' if holds else '  FAILED'}")
        if not holds:
            self.faults.append(f"{self.case}: {what}: {found:g}{unit}, expected {expected:g}{unit}")


def run(case, seconds, keep):
    """Plays a case. Returns what is wrong, or nothing if the machine had no time for it."""
    way, client, server = CASES[case]
    with Network() as network, tempfile.TemporaryDirectory() as work:
        work = keep or Path(work)
        for host, path, delay in (("client", client, CLIENT_MS), ("server", server, SERVER_MS)):
            file = work / f"{host}.toml"
            file.write_text(PATH.format(delay=delay, out=path.get("out", ""), back=path.get("back", "")))
            network.weir(host, "wan", file)
        network.gateway(work, shaped("5Mbit"))
        slug = case.replace(",", "").replace(" ", "-")
        files = {side: work / f"{slug}-{side}.pcap" for side in ("lan", "wan")}
        captures = [network.capture("router", "lan", files["lan"]), network.capture("provider", "customer", files["wan"])]
        listener = network.socket("server")
        listener.bind((SERVER, 0))
        listener.listen()
        transfers = [Transfer(network, listener, way, seconds) for _ in range(FLOWS)]
        sent = sum(transfer.retransmissions() for transfer in transfers)
        report = network.report()
        for transfer in transfers:
            transfer.close()
        whole = ["0 packets dropped by kernel" in stop(capture) for capture in captures]
        lan, wan = (Seen(files[side], way) for side in ("lan", "wan"))
    steering = report["steering"]
    if not all(whole) or steering["restarts"] or steering["hooks"]["passed_stale"]:
        return None
    print(f"{case}:")
    judged = Judged(case)
    row = next(row for row in report["traffic"] if row["kind"] == "class" and row["name"] == way)
    judge_counts(judged, row, sent, lan, wan)
    judge_times(judged, way, row, lan, wan)
    return judged.faults


def judge_counts(judged, row, sent, lan, wan):
    """Data that came again, beside the sender's count and tshark's.

    tshark calls a segment that fills a hole out of order if it comes within a round trip of the farthest one. With
    selective acknowledgements most repeated segments do, so what it counts is the sum of both kinds.
    """
    again, late = row["retransmitted_packets"], row["reordered_packets"]
    seen = sum((lan.again + lan.late).values())
    allowed = lambda count: max(1, 0.01 * count)
    judged.beside("again and late, beside tshark's", again + late, seen, allowed(seen))
    if "late" in judged.case:
        judged.beside("late, beside tshark's", late, seen - sent, allowed(seen))
    else:
        judged.beside("late in order", late, 0, allowed(again))
    if "before" not in judged.case:
        judged.beside("again, beside the sender's", again, sent, allowed(sent))


def judge_times(judged, way, row, lan, wan):
    """Medians of both sides in milliseconds. ACKs end those of the receiver's side, and echoes those of the sender's."""
    down = way == "down"
    for side, seen, key in (("LAN", lan, "rtt_lan_us"), ("WAN", wan, "rtt_wan_us")):
        times = (seen.acked if (side == "LAN") == down else seen.echoed).values()
        median = statistics.median(time for flow in times for time in flow) * 1e3
        judged.beside(f"{side}, median", row[key]["p50"] / 1e3, median, max(1, 0.05 * median), " ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    args = parser.parse_args()
    shutil.which("tshark") or sys.exit("quality: there is no tshark: `apt-get install tshark`")
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    faults = []
    for case in args.cases:
        # A run for which the machine had no time shows nothing.
        runs = (run(case, args.seconds, args.keep) for _ in range(TRIES))
        found = next((faults for faults in runs if faults is not None), None)
        faults += [f"{case}: the machine had no time for it"] if found is None else found
    if faults:
        sys.exit("quality: " + "; ".join(faults))


main()
