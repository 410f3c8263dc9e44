"""Hosts in a row, each in a network namespace: client, router, provider, server.

The gateway runs on the router's interface `wan`. The provider only forwards, so that what passes there is what is
on the wire. Interfaces have no offloads unless asked for, so that a segment is a packet for everybody.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WEIR = Path(os.environ.get("WEIR", ROOT / "target/release/weir")).resolve()
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
# Pairs of interfaces: host, interface, address; at both ends.
PAIRS = [
    (("client", "eth0", "10.1.0.2"), ("router", "lan", "10.1.0.1")),
    (("router", "wan", "10.2.0.1"), ("provider", "customer", "10.2.0.2")),
    (("provider", "internet", "10.3.0.1"), ("server", "eth0", "10.3.0.2")),
]
ROUTES = [("client", "10.1.0.1"), ("router", "10.2.0.2"), ("server", "10.3.0.1")]
SERVER, CLIENT = "10.3.0.2", "10.1.0.2"


def shaped(rate, *ways):
    """The file of a gateway with a class each way, `down` and `up`, whose flows have this rate each."""
    classes = [f"""[[gateway.class]]
name = "{way}"
direction = "{'in' if way == 'down' else 'out'}"
ack = {{ preset = "ack-shaper", flow_rate = "{rate}" }}
""" for way in ways or ("down", "up")]
    return '[ports]\ndev = "wan"\n' + "".join(classes)


class Network:
    """The hosts, and everything that was started on them."""

    def __init__(self, name="weir-evidence", offloads=False):
        self.name = f"{name}-{os.getpid()}"
        self.processes = []
        for host in ("client", "router", "provider", "server"):
            self.ip("netns", "add", self.space(host))
            self.ip("-n", self.space(host), "link", "set", "lo", "up")
            self.run(host, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for near, far in PAIRS:
            self.ip("link", "add", near[1], "netns", self.space(near[0]), "type", "veth",
                    "peer", "name", far[1], "netns", self.space(far[0]))
            for host, interface, address in (near, far):
                self.ip("-n", self.space(host), "address", "add", f"{address}/24", "dev", interface)
                if not offloads:
                    self.run(host, "ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off")
                self.ip("-n", self.space(host), "link", "set", interface, "up")
        for host, router in ROUTES:
            self.ip("-n", self.space(host), "route", "add", "default", "via", router, "quickack", "1")
        self.ip("-n", self.space("provider"), "route", "add", "10.1.0.0/24", "via", "10.2.0.1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            stop(process)
        for host in ("client", "router", "provider", "server"):
            subprocess.run(["ip", "netns", "delete", self.space(host)], check=False)

    def space(self, host):
        return f"{self.name}-{host}"

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def on(self, host, *words):
        return ["ip", "netns", "exec", self.space(host), *map(str, words)]

    def run(self, host, *words):
        done = subprocess.run(self.on(host, *words), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout

    def start(self, host, *words, **options):
        process = subprocess.Popen(self.on(host, *words), text=True, **options)
        self.processes.append(process)
        return process

    def weir(self, host, *words):
        """Starts a gateway or an emulator, and returns when it is ready."""
        Path("/run/weir").mkdir(mode=0o700, exist_ok=True)
        process = self.start(host, WEIR, *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        said = []
        reader = threading.Thread(target=lambda: said.append(process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(120)
        if said != ["ready\n"]:
            raise RuntimeError(f"weir {' '.join(map(str, words))} said {said}")
        return process

    def gateway(self, work, text):
        """Starts the router's gateway with this configuration, kept in the directory `work`."""
        file = Path(work, "gateway.toml")
        file.write_text(text)
        return self.weir("router", "run", file)

    def report(self):
        """What the gateway of the router says of itself."""
        return json.loads(self.run("router", WEIR, "ctl", "--json", "show", "--all"))["report"]

    def dashboard(self, *words):
        """Starts the page at its usual address on the router, and returns its process when it is served."""
        process = self.start("router", WEIR, "dashboard", *words, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if self.run("router", "ss", "-Hltn", "sport", "=", "8650"):
                return process
            time.sleep(0.1)
        raise RuntimeError("the page is not served")

    def capture(self, host, interface, file):
        process = self.start(host, "tcpdump", "-q", "-i", interface, "-s", "128", "-B", "32768", "-w", file, "tcp",
                             stderr=subprocess.PIPE)
        while "listening on" not in process.stderr.readline():
            pass
        return process

    def socket(self, host, kind=socket.SOCK_STREAM):
        """Returns a socket of a host, for this process."""
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        other = os.open(f"/run/netns/{self.space(host)}", os.O_RDONLY)
        try:
            enter(other)
            return socket.socket(socket.AF_INET, kind)
        finally:
            enter(own)
            os.close(own)
            os.close(other)


def enter(namespace):
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def stop(process, number=signal.SIGTERM):
    """Ends a process, and returns what it said last on standard error, if that is a pipe."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        _, said = process.communicate(timeout=30)
        return said
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
