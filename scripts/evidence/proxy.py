#!/usr/bin/env python3
"""The lines for a reverse proxy of docs/watching.md, in Debian's nginx on loopback in a network namespace.

scripts/evidence/proxy.py

With TLS and the password there are the page, the API, and the stream without delay. Without the password, with a
wrong one, without TLS, and by another name there is nothing. Needs root, nginx, htpasswd and openssl.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from network import ROOT, WEIR, stop

SPACE = f"weir-proxy-{os.getpid()}"
NAME = "weir.example.org"
CONFIG = """daemon off;
pid {work}/nginx.pid;
error_log {work}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    {lines}
}}
"""


def lines_of_the_book(work):
    page = (ROOT / "docs/watching.md").read_text()
    lines = re.search(r"^```\n(# nginx\n.*?)^```", page, re.S | re.M).group(1)
    return lines.replace("/etc/ssl/", f"{work}/").replace("/etc/nginx/", f"{work}/")


def on(*words):
    return ["ip", "netns", "exec", SPACE, *map(str, words)]


def curl(work, *options, name=NAME, scheme="https", path="/", port=443):
    """Status and body of a request."""
    done = subprocess.run(
        on("curl", "-s", "-m", "5", "--cacert", work / "weir.pem", "--resolve", f"{name}:{port}:127.0.0.1",
           "-w", "\n%{http_code}", *options, f"{scheme}://{name}:{port}{path}"), capture_output=True, text=True)
    body, _, status = done.stdout.rpartition("\n")
    return int(status or 0), body


def wait_for(port):
    for _ in range(100):
        if subprocess.run(on("ss", "-Hltn", "sport", "=", port), capture_output=True, text=True).stdout:
            return
        time.sleep(0.1)
    sys.exit(f"proxy: nothing listens at port {port}")


def check(work):
    faults = []
    right = ("-u", "ada:a good one")
    expected = [
        ("the page", (*right,), {}, 200, "<!doctype html>"),
        ("the API", (*right,), {"path": "/api/v1/state"}, 200, '"events"'),
        ("no password", (), {}, 401, ""),
        ("no password for the API", (), {"path": "/api/v1/state"}, 401, ""),
        ("a wrong password", ("-u", "ada:bad"), {}, 401, ""),
        ("no TLS", (*right,), {"scheme": "http"}, 400, ""),
        ("another name", (*right, "-k"), {"name": "other.example.org"}, 421, ""),
        ("a change", (*right, "-X", "POST"), {"path": "/api/v1/state"}, 405, "weir ctl"),
    ]
    for what, options, more, status, part in expected:
        found, body = curl(work, *options, **more)
        if found != status or part.lower() not in body.lower():
            faults.append(f"{what}: {found} instead of {status}: {body[:200]}")
    # The stream is cut after three seconds: what came until then was not kept back.
    begin = time.monotonic()
    _, body = curl(work, *right, "-N", "-m", "3", path="/api/v1/stream")
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    if len(events) < 2:
        faults.append(f"{len(events)} events of the stream in {time.monotonic() - begin:.1f} s")
    return len(expected) + 1, faults


def main():
    for tool in ("nginx", "htpasswd", "openssl", "curl"):
        shutil.which(tool) or sys.exit(f"proxy: there is no {tool}: `apt-get install nginx-light apache2-utils openssl curl`")
    processes = []
    with tempfile.TemporaryDirectory(prefix="weir-proxy-") as work:
        work = Path(work)
        os.chmod(work, 0o755)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}",
                        "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", work / "weir.key", "-out", work / "weir.pem"],
                       check=True, capture_output=True)
        subprocess.run(["htpasswd", "-bc", work / "weir.htpasswd", "ada", "a good one"], check=True, capture_output=True)
        (work / "nginx.conf").write_text(CONFIG.format(work=work, lines=lines_of_the_book(work)))
        subprocess.run(["ip", "netns", "add", SPACE], check=True)
        try:
            subprocess.run(["ip", "-n", SPACE, "link", "set", "lo", "up"], check=True)
            for command in ([WEIR, "dashboard", "--host", NAME], ["nginx", "-c", work / "nginx.conf"]):
                processes.append(subprocess.Popen(on(*command), stderr=subprocess.DEVNULL))
            wait_for(8650)
            wait_for(443)
            count, faults = check(work)
        finally:
            for process in processes:
                stop(process)
            subprocess.run(["ip", "netns", "delete", SPACE], check=True)
    if faults:
        sys.exit("proxy: " + "; ".join(faults))
    print(f"proxy: {count} requests are answered as they should be")


main()
