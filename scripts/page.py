"""The page of `weir dashboard` in Debian's Chromium, fed by a stream of many customers with hostile names.

    scripts/page.py [--customers N] [--keep DIRECTORY]

It fails if a name becomes markup, if the numbers of the table are not those of the stream, if an update takes
more than 50 ms of the main thread (ten times that on a busy machine), or if a file of another host is asked for.
`--keep` leaves pictures, in light and dark, and on a narrow screen.
"""

import argparse
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

PAGE = pathlib.Path(__file__).parent.parent / "crates/weir/src/command/dashboard/page"
FILES = {"/": "index.html", "/app.js": "app.js", "/style.css": "style.css"}
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
HOSTILE = '<img src=x onerror="document.body.id=\'broken\'">'
RTT = {"samples": 9, "p50": 38_200, "p90": 60_000, "p99": 120_400}


def row(kind, name, direction, bps, target, title=""):
    return {
        "kind": kind, "name": name, "title": title, "direction": direction, "bps": bps, "target_bps": target,
        "bytes": 4_000_000, "packets": 3_000, "tcp_controlled_bytes": 3_000_000, "tcp_passed_bytes": 0,
        "unresponsive_bytes": 1_000_000, "dropped_packets": 7, "dropped_bytes": 9_000, "marked_packets": 0,
        "active_flows": 3, "held_bytes": 0, "retransmitted_packets": 30, "reordered_packets": 1,
        "rtt_wan_us": RTT, "rtt_lan_us": {**RTT, "p50": 900, "p99": 3_100}, "score": {"web": 98, "call": 100, "game": 61},
    }


def rows(customers, tick):
    yield row("link", "eth1", "in", 2.5e9, 0)
    yield row("site", HOSTILE, "in", 60e6, 60_000_000)
    for n in range(customers):
        name = HOSTILE + str(n) if n == customers - 1 else str(n)
        yield row("customer", name, "in", (n + tick) * 1e4, 50_000_000, HOSTILE if n % 100 == 0 else f"Name of {n}")
        yield row("customer", name, "out", 1e4, 10_000_000)


def news(part, begins, tick):
    events = [{"unix_s": 1_700_000_000, "text": "degraded: " + HOSTILE}]
    state = {"schema": 2, "wall_s": 100.0 + tick, "degraded": None, "restarts": 0, "failure": None, "rows": 0, "events": events}
    flow = {"kind": "flow", "name": "10.0.0.1:443 > 10.1.0.1:5000", "class": HOSTILE, "direction": "in", "bps": 5e6, "bytes": 9_000,
            "target_bps": None, "held_bytes": 0, "rtt_wan_us": {"min": 1, "smoothed": 2_000, "last": 3}, "rtt_lan_us": {"min": 0, "smoothed": 0, "last": 0},
            "retransmitted_packets": 0, "reordered_packets": 0, "ack_held_us": 0, "zero_windows": 0, "set_up_us": 0, "pass_reason": None}
    return {"begins": begins, "state": state, "traffic": part, "flows": [flow], "passed": {"not_tcp": 5}}


class Handler(http.server.BaseHTTPRequestHandler):
    customers = 10_000
    asked = []

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path.split("?")[0]
        Handler.asked.append(path)
        if path == "/api/v1/stream":
            return self.stream()
        if path == "/api/v1/history":
            body, kind = json.dumps({"step_s": 300, "down_bps": [1e6, 2e6, 3e6], "up_bps": [0, 1e6, 0], "rtt_wan_p50_us": [1, 2, 3],
                                     "rtt_wan_p99_us": [9, 9, 9], "rtt_lan_p99_us": [1, 1, 1], "resent_ppm": [0, 100, 0]}).encode(), "application/json"
        elif path == "/slow.js":
            time.sleep(5)
            body, kind = b"", TYPES[".js"]
        elif path in FILES:
            file = PAGE / FILES[path]
            # The browser takes its picture when all is loaded: a script that is late gives the stream time.
            body = file.read_bytes().replace(b"</head>", b"<script src=/slow.js async></script></head>")
            kind = TYPES[file.suffix]
        else:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", policy())
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        all_rows = list(rows(Handler.customers, 0))
        try:
            for first in range(0, len(all_rows), 2_000):
                self.send(news(all_rows[first:first + 2_000], first == 0, 0))
            for tick in range(1, 40):
                time.sleep(0.5)
                self.send(news(list(rows(Handler.customers, tick))[-2_000:], False, tick))
        except OSError:
            pass

    def send(self, data):
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()


def policy():
    """The policy that the program sends."""
    source = (PAGE.parent / "server.rs").read_text()
    text = re.search(r'const POLICY: &str = "(.*?)";', source, re.S).group(1)
    return re.sub(r"\\\n\s*", "", text)


def chromium(url, *options):
    program = shutil.which("chromium") or sys.exit("page: there is no chromium: `apt-get install chromium`")
    with tempfile.TemporaryDirectory() as home:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", *options, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--customers", type=int, default=10_000)
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    Handler.customers = args.customers
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    begin = time.monotonic()
    dom = chromium(url, "--dump-dom")
    faults = []

    def check(holds, what):
        if not holds:
            faults.append(what)

    check("<img" not in dom and 'id="broken"' not in dom, "a name became markup")
    check(f"{args.customers:,} rows" in dom, "not all customers are there")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", dom)
    first = cells[:15]
    # The last customer is the busiest, by its rate; names are text.
    expected = HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + str(args.customers - 1)
    check(first[:1] == [expected], f"the busiest is {first[:1]}")
    # 1,000,000 of 4,000,000 bytes; 30 of 3,000 packets; both directions of what is counted.
    check(first[6:] == ["25", "14", "1.0", "38.2", "120", "0.9", "3.1", "98", "6"], f"its numbers are {first[6:]}")
    found = re.search(r'data-update-ms="([\d.]+)"', dom)
    took = float(found.group(1)) if found else None
    check(took is not None and took < 500, f"an update took {took} ms")
    check(set(Handler.asked) <= {"/", "/app.js", "/style.css", "/api/v1/stream", "/slow.js"}, f"asked for {set(Handler.asked)}")
    print(f"page: {len(dom)} characters, an update of {args.customers} customers took {took} ms, {time.monotonic() - begin:.1f} s in all")
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
        for name, options in [("light", ["--window-size=1280,900"]), ("dark", ["--window-size=1280,900", "--force-dark-mode"]),
                              ("phone", ["--window-size=500,900"])]:
            chromium(url, *options, f"--screenshot={args.keep / (name + '.png')}")
    if faults:
        sys.exit("page: " + "; ".join(faults))


main()
