"""Shares of a class tree by progressive filling: guarantees first, then what is left in equal steps by
weight, up to demands and ceilings, level by level (Floyd and Jacobson, "Link-sharing and Resource Management
Models for Packet Networks", 1995; max-min fairness as in Bertsekas and Gallager, section 6.5.2).

The solution is a fluid's, and packets are whole. Start-time fair queueing, which shares what is borrowed,
keeps the service of two classes, each over its weight, within a packet of each over its weight (Goyal, Vin
and Cheng 1996, theorem 1). So a class of weight 10 beside one of weight 1 may be off by 11 packets of 1514
bytes at each level: 33 kbit/s over the four seconds that are compared, or 0.67 % of 5 Mbit/s. A share may be
off by 0.6 % of the link here.
"""

import json
import os
import subprocess
import tempfile

import link

ALLOWED = 0.006
HEADERS = 42


class Node:
    """A class; a leaf has a demand in bits per second and datagrams of `size` bytes."""

    def __init__(self, name, parent):
        self.name, self.parent, self.children = name, parent, []
        self.rate = self.ceil = self.demand = self.size = 0
        self.weight, self.priority = 1, 0


def make(rng):
    """A random tree: its root, its leaves and the rate of the link."""
    rate = rng.choice([5, 10, 20]) * 1_000_000
    root, leaves, names = Node("root", None), [], iter(range(10**6))
    root.rate = root.ceil = rate

    def ceiling(node):
        above = node.parent
        tops = []
        while above:
            tops.append(above.ceil or rate)
            above = above.parent
        top = min(tops)
        return min(top, max(node.rate, int(top * rng.uniform(0.1, 1)) // 1000 * 1000, 100_000))

    def grow(parent, depth):
        count = rng.randint(2, 4)
        cuts = sorted(rng.random() for _ in range(count))
        for low, high in zip([0] + cuts, cuts):
            node = Node(f"c{next(names)}", parent)
            parent.children.append(node)
            guaranteed = int(parent.rate * (high - low)) // 1000 * 1000
            node.rate = 0 if rng.random() < 0.2 or guaranteed < 20_000 else guaranteed
            node.weight = rng.choice([1, 1, 2, 3, 10])
            if rng.random() < 0.35:
                node.ceil = ceiling(node)
            if depth < 2 and rng.random() < 0.4:
                grow(node, depth + 1)
            else:
                node.size = rng.choice([1472, 1472, 1000, 400])
                node.demand = int(rate * rng.choice([0.05, 0.2, 0.5, 1.2, 1.2]))
                leaves.append(node)

    grow(root, 0)
    return root, leaves, rate


def wanted(node):
    """What a class can use."""
    demand = sum(map(wanted, node.children)) if node.children else node.demand
    return min(demand, node.ceil) if node.ceil else demand


def fill(node, share, shares):
    """Divides the share of a class among its children."""
    if not node.children:
        shares[node.name] = share
        return
    given = {child: min(child.rate, wanted(child)) for child in node.children}
    left = share - sum(given.values())
    while True:
        hungry = [child for child in node.children if wanted(child) - given[child] > 1e-6]
        if not hungry or left < 1e-6:
            break
        weights = sum(child.weight for child in hungry)
        step = min([left / weights] + [(wanted(child) - given[child]) / child.weight for child in hungry])
        for child in hungry:
            given[child] += step * child.weight
        left -= step * weights
    for child, amount in given.items():
        fill(child, amount, shares)


def experiment(root, leaves, seed):
    """The same tree with a flow for each leaf."""
    lines = ['name = "tree"', 'duration = "6s"', 'interval = "1s"', f"seed = {seed}", "[path]", 'rtt = "2ms"']

    def describe(node):
        lines.extend(["[[gateway.class]]", f'name = "{node.name}"'])
        if node.parent:
            lines.extend([f'parent = "{node.parent.name}"', f"weight = {node.weight}"])
        if node.rate:
            lines.append(f'rate = "{node.rate}bit"')
        if node.parent and node.ceil:
            lines.append(f'ceil = "{node.ceil}bit"')
        if not node.children:
            lines.extend(['queue = "100p"', f"priority = {node.priority}", f"match = [{{ dst_port = {port(node)} }}]"])
        for child in node.children:
            describe(child)

    describe(root)
    for leaf in leaves:
        payload = max(1000, leaf.demand * leaf.size // (leaf.size + HEADERS))
        lines.extend(["[[flow]]", f'id = "{leaf.name}"', 'protocol = "udp"', f"port = {port(leaf)}"])
        lines.extend([f'rate = "{payload}bit"', f"datagram = {leaf.size}", f'start = "{137 * int(leaf.name[1:])}us"'])
    return "\n".join(lines) + "\n"


def port(leaf):
    return 6000 + int(leaf.name[1:])


def simulate(weir, text):
    """The result of an experiment."""
    with tempfile.TemporaryDirectory() as directory:
        file, result = os.path.join(directory, "e.toml"), os.path.join(directory, "r.json")
        with open(file, "w", encoding="ascii") as out:
            out.write(text)
        done = subprocess.run([weir, "sim", file, "--json", result], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr + text)
        with open(result, encoding="utf-8") as found:
            return json.load(found)


def case(weir, seed):
    """A difference in words, or None."""
    root, leaves, rate = make(link.generator("tree", seed))
    shares = {}
    fill(root, min(rate, wanted(root)), shares)
    flows = simulate(weir, experiment(root, leaves, seed + 1))["flows"]
    for leaf in leaves:
        flow = next(flow for flow in flows if flow["id"].split(".")[0] == leaf.name)
        seconds = [interval["bps"] for interval in flow["intervals"][2:6]]
        got = sum(seconds) / len(seconds) * (leaf.size + HEADERS) / leaf.size
        if abs(got - shares[leaf.name]) > ALLOWED * rate:
            return f"{leaf.name} has {got:.0f} bit/s of {rate}, the fluid {shares[leaf.name]:.0f}"
    return None
