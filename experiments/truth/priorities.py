"""Laws of a class tree whose leaves have priorities. Who borrows first is decided frame by frame, as in HTB,
so that shares differ from a fluid's by some per cent of the link. The rest holds all the same: each leaf has
its guarantee, no class exceeds its ceiling, and the link is used whole (Floyd and Jacobson, "Link-sharing and
Resource Management Models for Packet Networks", 1995).

A class below its guarantee may wait for the frame that is being sent and for one of each other class below
its own. So it has at least the guarantee less one frame of 1514 bytes for each leaf, in the four seconds that
are compared. A frame may begin within a ceiling and end beyond it, at either end of these seconds.
"""

import link
import tree

SECONDS = 4
FRAME = 1514 * 8


def used(node, bits):
    """Bits of a class, and what is wrong within it."""
    if not node.children:
        total, wrong = bits[node.name], None
        least = min(node.rate, tree.wanted(node)) * SECONDS - FRAME * len(bits)
        if total < least:
            wrong = f"{node.name} has {total:.0f} bits, guaranteed {least:.0f}"
    else:
        parts = [used(child, bits) for child in node.children]
        total = sum(part for part, _ in parts)
        wrong = next((why for _, why in parts if why), None)
    if node.ceil and total > node.ceil * SECONDS + 2 * FRAME:
        wrong = wrong or f"{node.name} has {total:.0f} bits, at most {node.ceil * SECONDS}"
    return total, wrong


def case(weir, seed):
    """A broken law in words, or None."""
    rng = link.generator("priorities", seed)
    root, leaves, rate = tree.make(rng)
    for leaf in leaves:
        leaf.priority = rng.choice([0, 0, 1, 2])
    flows = tree.simulate(weir, tree.experiment(root, leaves, seed + 1))["flows"]
    bits = {}
    for leaf in leaves:
        flow = next(flow for flow in flows if flow["id"].split(".")[0] == leaf.name)
        payload = sum(interval["bps"] for interval in flow["intervals"][2:6])
        bits[leaf.name] = payload * (leaf.size + tree.HEADERS) / leaf.size
    total, wrong = used(root, bits)
    whole = min(rate, tree.wanted(root)) * SECONDS
    if abs(total - whole) > FRAME * len(leaves):
        wrong = wrong or f"all have {total:.0f} bits of {whole:.0f}"
    return wrong
