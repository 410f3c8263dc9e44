#!/usr/bin/env python3
"""Lets a real Prometheus scrape the files of metrics, and asks it what it took.

scripts/prometheus.py DIRECTORY PROMETHEUS

The directory has metrics.txt (OpenMetrics) and metrics.prom (Prometheus's text format). Both are served at
ports of loopback, and each sample of a file must be a series of the target.
"""

import http.server
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

TYPES = {
    "metrics.txt": "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "metrics.prom": "text/plain; version=0.0.4; charset=utf-8",
}


def serve(path):
    text = path.read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", TYPES[path.name])
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    samples = sum(1 for line in text.decode().splitlines() if line and not line.startswith("#"))
    return server.server_address[1], samples


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, query):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)["data"]["result"]


def main():
    directory, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    served = {name: serve(directory / name) for name in TYPES}
    targets = [f"127.0.0.1:{port}" for port, _ in served.values()]
    scrape = {"job_name": "weir", "scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": [{"targets": targets}]}
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        config = pathlib.Path(home, "prometheus.yml")
        config.write_text(json.dumps({"scrape_configs": [scrape]}))
        command = [program, f"--config.file={config}", f"--storage.tsdb.path={home}/data", f"--web.listen-address=127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait(port, served)
        finally:
            process.terminate()
            process.wait()


def wait(port, served):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        time.sleep(0.5)
        try:
            taken = {r["metric"]["instance"]: int(r["value"][1]) for r in ask(port, "scrape_samples_scraped")}
        except OSError:
            continue
        if len(taken) == len(served):
            break
    for name, (at, samples) in served.items():
        found = taken.get(f"127.0.0.1:{at}")
        if found != samples:
            sys.exit(f"prometheus: {found} samples of {name}, which has {samples}")
    for _, (at, _) in served.items():
        names = {r["metric"]["name"] for r in ask(port, f'weir_traffic_bytes_total{{instance="127.0.0.1:{at}"}}')}
        if 'a"} 1\n# EOF\\<b>\x7f' not in names:
            sys.exit(f"prometheus: the hostile name is not what it was: {names}")


main()
