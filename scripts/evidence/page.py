#!/usr/bin/env python3
"""The page of `weir dashboard` about a running gateway, in Debian's Chromium.

scripts/evidence/page.py [--customers N] [--keep DIRECTORY]

Two customers download through a gateway, and one sends datagrams. Each number that the page shows must be the one
that the API has, and bytes and rates must be those that the interfaces and the receivers of the lab counted. Then the
list has 10,000 customers: the first paint must come within a second, and an update take at most 50 ms of the main
thread. Needs root and chromium.
"""

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

from browser import Browser
from network import CLIENT, SERVER, Network, stop

PAGE = "http://127.0.0.1:8650/"
PAINT_MS, UPDATE_MS = 1_000, 50
GATEWAY = """[ports]
dev = "wan"
[gateway.customers]
file = "customers.csv"
[[gateway.class]]
name = "rest"
direction = "in"
rate = "100Mbit"
"""
# Customer, rate, and what comes to its address: TCP as fast as it may, or datagrams at this rate.
BUSY = [("ada", "10.1.0.2", 20), ("ben", "10.1.0.3", 10)]
DATAGRAMS = ("cy", "10.1.0.4", 50, 4e6)
# Cells of a table row by its columns, as text, with the row's name.
TABLE = """[...document.querySelectorAll('#rows tr[data-place]')].map(row =>
  [...row.children].map(cell => cell.textContent))"""


def customers(count):
    lines = ["id,name,prefixes,down,up"]
    for name, address, rate in BUSY:
        lines.append(f"{name},Name of {name},{address},{rate}Mbit,{rate}Mbit")
    name, address, rate, _ = DATAGRAMS
    lines.append(f"{name},<b>{name}</b>,{address},{rate}Mbit,{rate}Mbit")
    for n in range(count - len(lines) + 1):
        lines.append(f"idle{n},,10.{100 + (n >> 16)}.{n >> 8 & 255}.{n & 255},5Mbit,1Mbit")
    return "\n".join(lines) + "\n"


class Download:
    """A connection from the server to an address of the client, which counts what arrives."""

    def __init__(self, network, listener, address):
        self.near = network.socket("client")
        self.near.bind((address, 0))
        self.near.connect((SERVER, listener.getsockname()[1]))
        self.far, _ = listener.accept()
        self.received, self.ends = 0, False
        for work in (self.send, self.receive):
            threading.Thread(target=work, daemon=True).start()

    def send(self):
        block = bytes(65536)
        try:
            while not self.ends:
                self.far.send(block)
            self.far.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def receive(self):
        while got := self.near.recv(1 << 20):
            self.received += len(got)
        self.near.close()


def send_datagrams(network, stopped, sent):
    server = network.socket("server", socket.SOCK_DGRAM)
    _, address, _, rate = DATAGRAMS
    size, begin = 1_000, time.monotonic()
    while not stopped.is_set():
        server.sendto(bytes(size), (address, 9))
        sent[0] += size + 28
        time.sleep(max(0, begin + sent[0] * 8 / rate - time.monotonic()))


def api(network, path):
    return json.loads(network.run("router", "curl", "-sf", PAGE + "api/v1/" + path))


def mbit(bps):
    """A rate as the page writes it: three digits."""
    return float(f"{bps / 1e6:.3g}")


class Checks:
    def __init__(self):
        self.faults, self.count = [], 0

    def holds(self, what, right):
        self.count += 1
        if not right:
            self.faults.append(what)

    def near(self, what, found, expected, part):
        self.holds(f"{what}: {found}, expected {expected} within {part:.0%}", abs(found - expected) <= part * abs(expected))


def rows_of(report, kind):
    found = {}
    for row in report["traffic"]:
        if row["kind"] == kind:
            found.setdefault(row["name"], {})[row["direction"]] = row
    return found


def compare_table(checks, browser, network):
    """Each number of the list of customers beside the API's of the same second."""
    for _ in range(20):
        # Both are of the same moment if the page has not changed while the API was asked.
        before = browser.ask(TABLE)
        report = api(network, "report")
        if before == browser.ask(TABLE):
            break
    else:
        sys.exit("page: it changes too often to be looked at")
    known = rows_of(report, "customer")
    heads = [head.rstrip(" ▲▼") for head in browser.ask("[...document.querySelectorAll('#heads th')].map(h => h.textContent)")]
    for cells in before:
        name, cell = cells[0], dict(zip([f"{i} {head}" for i, head in enumerate(heads)], cells))
        row = known[name]
        sums = lambda key: sum(row[way][key] for way in row)
        times = max(row.values(), key=lambda way: way["rtt_wan_us"]["samples"] + way["rtt_lan_us"]["samples"])
        milli = lambda side, key: times[side][key] / 1e3 if times[side]["samples"] else None
        share = lambda part, whole: 100 * part / whole if whole else None
        expected = {
            "1 Title": row["in"].get("title", ""),
            "2 Down Mbit/s": mbit(row["in"]["bps"]), "3 of": mbit(row["in"]["target_bps"]) or None,
            "4 Up Mbit/s": mbit(row["out"]["bps"]), "5 of": mbit(row["out"]["target_bps"]) or None,
            "6 Not TCP %": share(sums("unresponsive_bytes"), sums("bytes")), "7 Dropped": sums("dropped_packets"),
            "8 Resent %": share(sums("retransmitted_packets"), sums("packets")),
            "9 WAN ms": milli("rtt_wan_us", "p50"), "10 p99": milli("rtt_wan_us", "p99"),
            "11 LAN ms": milli("rtt_lan_us", "p50"), "12 p99": milli("rtt_lan_us", "p99"),
            "13 Web": times.get("score", {}).get("web"), "14 Flows": sums("active_flows"),
        }
        for key, value in expected.items():
            shown = cell[key]
            if value is None or isinstance(value, str):
                checks.holds(f"{name}, {key}: {shown} instead of {value}", shown == (value if value is not None else "–"))
            else:
                digits = len(shown.partition(".")[2])
                checks.holds(f"{name}, {key}: {shown} instead of {value}",
                             abs(float(shown.replace(",", "")) - value) <= 0.501 * 10 ** -digits)
    return len(before)


def compare_lab(checks, network, downloads, sent):
    """Rates of the API over five seconds, beside what the lab itself counted meanwhile."""
    def look():
        report = network.report()
        counted = {name: download.received for (name, _, _), download in zip(BUSY, downloads)}
        link = int(network.run("router", "cat", "/sys/class/net/wan/statistics/rx_bytes"))
        return time.monotonic(), report, counted, link, sent[0]
    first = look()
    time.sleep(8)
    last = look()
    seconds = last[0] - first[0]
    of = lambda report, kind, name: rows_of(report, kind)[name]["in"]
    for (name, _, rate), download in zip(BUSY, downloads):
        bytes_told = of(last[1], "customer", name)["bytes"] - of(first[1], "customer", name)["bytes"]
        received = last[2][name] - first[2][name]
        # The rate counts payload.
        checks.near(f"bytes of {name}", bytes_told, received, 0.02)
        checks.near(f"rate of {name}", bytes_told * 8 / seconds / 1e6, rate, 0.05)
    name = DATAGRAMS[0]
    told = of(last[1], "customer", name)
    before = of(first[1], "customer", name)
    checks.near(f"bytes of {name}", told["bytes"] - before["bytes"], last[4] - first[4], 0.02)
    checks.holds(f"{name} is not TCP", told["unresponsive_bytes"] == told["bytes"])
    checks.near("bytes of the link", of(last[1], "link", "wan")["bytes"] - of(first[1], "link", "wan")["bytes"],
                last[3] - first[3], 0.02)


def measure(checks, browser):
    """First paint, and the main thread's own time for updates, of which one comes each second."""
    browser.call("Performance.enable", timeDomain="threadTicks")
    browser.open(PAGE)
    browser.wait("document.querySelectorAll('#rows tr[data-place]').length > 0")
    paint = float(browser.wait("document.body.dataset.contentMs || document.body.dataset.paintMs"))
    time.sleep(3)
    busy = lambda: next(m["value"] for m in browser.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")
    begin, before = time.monotonic(), busy()
    time.sleep(20)
    update = (busy() - before) * 1e3 / (time.monotonic() - begin)
    count = browser.ask("document.getElementById('count').textContent")
    print(f"page: {count}: first paint after {paint:.0f} ms, {update:.1f} ms of the main thread for an update")
    checks.holds(f"first paint after {paint:.0f} ms", paint < PAINT_MS)
    checks.holds(f"an update took {update:.1f} ms", update < UPDATE_MS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--customers", type=int, default=10_000)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    checks = Checks()
    with Network() as network, tempfile.TemporaryDirectory() as work:
        work = Path(work)
        (work / "gateway.toml").write_text(GATEWAY)
        (work / "customers.csv").write_text(customers(20))
        for _, address, *_ in [*BUSY, DATAGRAMS]:
            if address != CLIENT:
                network.ip("-n", network.space("client"), "address", "add", f"{address}/24", "dev", "eth0")
        gateway = network.weir("router", "run", work / "gateway.toml")
        network.dashboard()
        listener = network.socket("server")
        listener.bind((SERVER, 0))
        listener.listen()
        downloads = [Download(network, listener, address) for _, address, _ in BUSY]
        stopped, sent = threading.Event(), [0]
        sender = threading.Thread(target=send_datagrams, args=(network, stopped, sent), daemon=True)
        sender.start()
        with Browser(network.on("router")) as browser:
            browser.open(PAGE)
            browser.wait("document.querySelectorAll('#rows tr[data-place]').length >= 20", 60)
            time.sleep(5)
            looked = sum(compare_table(checks, browser, network) for _ in range(3))
            compare_lab(checks, network, downloads, sent)
            print(f"page: {looked} rows, {checks.count} numbers compared")
            # A running gateway has room for few classes beyond those that it began with.
            stop(gateway)
            (work / "customers.csv").write_text(customers(args.customers))
            network.weir("router", "run", work / "gateway.toml")
            rows = f"{args.customers:,} rows"
            browser.wait(f"document.getElementById('count').textContent === '{rows}'", 60)
            measure(checks, browser)
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                browser.picture(args.keep / "page.png")
        stopped.set()
        sender.join()
        for download in downloads:
            download.ends = True
    if checks.faults:
        sys.exit("page: " + "; ".join(checks.faults))


main()
