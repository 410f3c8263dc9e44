"""Tests of flent as experiments, and its data files.

:func:`experiment` returns RRUL or one of the TCP tests as an experiment, :func:`write` a result as the data file
that ``flent`` would have written, which ``flent`` and its GUI then plot, and :func:`read` reads such files.

Examples
--------
>>> import weir
>>> test = weir.flent.experiment("tcp_upload", length_s=10, path={"wan": {"rate": "10Mbit", "delay": "20ms"}})
>>> result = weir.sim(test)
>>> data = weir.flent.of(result)
>>> data.names
['Ping (ms) ICMP', 'TCP upload']
>>> 9.0 < data.mean("TCP upload") < 10.0
True
"""

from __future__ import annotations

import gzip
import json
import math
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._results import Result
from ._weir import ExperimentError

__all__ = ["Data", "TESTS", "experiment", "of", "read", "write"]

#: Seconds of pings alone before and after the load, as in flent.
DELAY_S = 5
#: Seconds between values, flent's default.
STEP_S = 0.2
#: Format of data files that this module writes.
VERSION = 4

#: Tests by name: number of uploads and of downloads, and whether each direction has the four classes of RRUL.
TESTS: Mapping[str, Tuple[int, int, bool]] = {
    "rrul": (4, 4, True),
    "rrul_be": (4, 4, False),
    "tcp_upload": (1, 0, False),
    "tcp_download": (0, 1, False),
    "tcp_bidirectional": (1, 1, False),
    "tcp_1up": (1, 0, False),
    "tcp_1down": (0, 1, False),
    "tcp_2up": (2, 0, False),
    "tcp_8up": (8, 0, False),
    "tcp_8down": (0, 8, False),
    "tcp_12up": (12, 0, False),
    "tcp_12down": (0, 12, False),
}

_CLASSES = ("BE", "BK", "CS5", "EF")


class Data:
    """Series of one test.

    Attributes
    ----------
    name : str
        Name of the test.
    t_s : list of float
        Times in seconds since the start.
    metadata : dict
        What flent keeps beside the series.
    """

    def __init__(
        self, name: str, t_s: Sequence[float], values: Mapping[str, Sequence[Optional[float]]], metadata: Mapping[str, Any]
    ) -> None:
        self.name, self.t_s, self.metadata = name, list(t_s), dict(metadata)
        self._values = {series: list(column) for series, column in values.items()}

    @property
    def names(self) -> List[str]:
        """Names of the series, in alphabetical order."""
        return sorted(self._values)

    def __getitem__(self, series: str) -> List[Optional[float]]:
        """Return the values of a series, with None where there is none."""
        if series not in self._values:
            raise KeyError(f"{series}: the series are {', '.join(self.names)}")
        return self._values[series]

    def mean(self, series: str, from_s: float = 2 * DELAY_S, until_s: float = math.inf) -> float:
        """Return the mean of a series between two times; by default from five seconds after the load began."""
        found = [v for t, v in zip(self.t_s, self[series]) if v is not None and from_s <= t < until_s]
        if not found:
            raise ValueError(f"{series}: no values from {from_s} s on")
        return math.fsum(found) / len(found)

    def __repr__(self) -> str:
        return f"<weir.flent.Data of {self.name}: {', '.join(self.names)}>"


def experiment(
    test: str,
    path: Mapping[str, Any],
    *,
    length_s: int = 60,
    cc: str = "cubic",
    **changes: Any,
) -> Dict[str, Any]:
    """Return a test of flent as an experiment for :func:`weir.sim`.

    Uploads and downloads last for ``length_s`` and begin after five seconds. A ping is a byte of TCP every
    0.2 s, acknowledged at once. Links of Weir know no DSCP: the classes of RRUL are flows of their own with
    the same treatment.

    Parameters
    ----------
    test : str
        One of ``TESTS``.
    path : dict
        The table ``[path]`` of the experiment.
    length_s : int
        Length of the load in seconds.
    cc : str
        Congestion control of all flows.
    **changes
        Other keys of the experiment, such as ``gateway``.

    Raises
    ------
    ValueError
        If there is no such test.
    """
    if test not in TESTS:
        raise ValueError(f"{test}: the tests are {', '.join(TESTS)}")
    up, down, _ = TESTS[test]
    load = {"start": f"{DELAY_S}s", "duration": f"{length_s}s", "cc": cc}
    flows: List[Dict[str, Any]] = [
        {"id": "ping", "burst": "1B", "pause": f"{int(STEP_S * 1000)}ms", "delayed_ack": 1, "cc": "reno"}
    ]
    if up:
        flows.append({"id": "up", "count": up, **load})
    if down:
        flows.append({"id": "down", "count": down, "direction": "in", **load})
    return {
        "name": test,
        "duration": f"{length_s + 2 * DELAY_S}s",
        "path": dict(path),
        "flow": flows,
        "series": ["rtt"],
        **changes,
    }


def of(result: Result) -> Data:
    """Return the series of a test that :func:`weir.sim` has made.

    Parameters
    ----------
    result : Result
        Result of an experiment by :func:`experiment`.

    Raises
    ------
    ValueError
        If it is not the result of such an experiment.
    """
    test = result.experiment
    if test not in TESTS:
        raise ValueError(f"{test}: the tests are {', '.join(TESTS)}")
    up, down, classes = TESTS[test]
    steps = int(round(float(result.data["duration_s"]) / STEP_S))
    times = [n * STEP_S for n in range(steps)]
    values: Dict[str, List[Optional[float]]] = {}
    for direction, group, count in (("upload", "up", up), ("download", "down", down)):
        each = [_rates(result, f"{group}.{n}", steps) for n in range(count)]
        for n, rates in enumerate(each):
            values[_series(test, direction, n, classes, count)] = rates
        if count > 1:
            values[f"TCP {direction} sum"] = [_sum(parts) for parts in zip(*each)]
            values[f"TCP {direction} avg"] = [_mean(parts) for parts in zip(*each)]
    if up and down:
        totals = [name for name in values if not name.endswith((" sum", " avg"))]
        values["TCP totals"] = [_sum(parts) for parts in zip(*(values[name] for name in totals))]
    pings = _pings(result, steps)
    values["Ping (ms) ICMP"] = pings
    if test.startswith("rrul"):
        values["Ping (ms) avg"] = pings
    return Data(test, times, values, {"NAME": test, "HOST": "weir", "STEP_SIZE": STEP_S})


def write(result: Result, path: Union[str, "os.PathLike[str]"], *, title: str = "") -> None:
    """Write a result as a data file of flent, compressed if the name ends with ``.gz``.

    Parameters
    ----------
    result : Result
        Result of an experiment by :func:`experiment`.
    path : path-like
        File, ``NAME.flent`` or ``NAME.flent.gz``.
    title : str
        Title for flent's plots.

    Raises
    ------
    ValueError
        If it is not the result of such an experiment.
    """
    data = of(result)
    begin = datetime.now(timezone.utc).replace(microsecond=0)
    stamp = begin.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    series = {
        name: {
            "MEAN_VALUE": _mean(data[name]),
            "UNITS": "ms" if name.startswith("Ping") else "Mbits/s",
        }
        for name in data.names
    }
    raw = {
        name: [{"t": begin.timestamp() + t, "val": v} for t, v in zip(data.t_s, data[name]) if v is not None]
        for name in data.names
        if not name.endswith((" sum", " avg", " totals"))
    }
    duration = float(result.data["duration_s"])
    document = {
        "version": VERSION,
        "metadata": {
            **data.metadata,
            "HOSTS": ["weir"],
            "LOCAL_HOST": "weir",
            "TIME": stamp,
            "T0": stamp,
            "TITLE": title,
            "NOTE": f"simulated by Weir, seed {result.seed}",
            "LENGTH": int(duration) - 2 * DELAY_S,
            "TOTAL_LENGTH": int(duration),
            "TEST_PARAMETERS": {},
            "IP_VERSION": 4,
            "DATA_FILENAME": Path(path).name,
            "SERIES_META": series,
        },
        "x_values": data.t_s,
        "results": {name: data[name] for name in data.names},
        "raw_values": raw,
    }
    text = json.dumps(document, indent=2, sort_keys=True).encode()
    Path(path).write_bytes(gzip.compress(text) if str(path).endswith(".gz") else text)


def read(path: Union[str, "os.PathLike[str]"]) -> Data:
    """Read a data file of flent, of any version up to the one that :func:`write` writes.

    Parameters
    ----------
    path : path-like
        File, compressed by gzip or not.

    Raises
    ------
    ExperimentError
        If it is no such file, or of a later version; with its name.
    """
    content = Path(path).read_bytes()
    try:
        document = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        version = int(document.get("version", 1))
        times, values, metadata = document["x_values"], document["results"], document["metadata"]
        name = str(metadata["NAME"])
        lengths = {len(column) for column in values.values()}
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ExperimentError(f"{path}: no data file of flent: {type(error).__name__} {error}") from None
    if version > VERSION:
        raise ExperimentError(f"{path}: version {version} of flent's data files; {VERSION} is the latest known")
    if lengths - {len(times)}:
        raise ExperimentError(f"{path}: its series have other lengths than its {len(times)} times")
    return Data(name, times, values, metadata)


def _series(test: str, direction: str, number: int, classes: bool, count: int) -> str:
    if classes:
        return f"TCP {direction} {_CLASSES[number]}"
    if test == "rrul_be":
        return f"TCP {direction} BE{number + 1 if number else ''}"
    if count > 1:
        return f"TCP {direction}::{number + 1}"
    return f"TCP {direction}"


def _rates(result: Result, flow: str, steps: int) -> List[Optional[float]]:
    """Return received Mbit/s in each step; None before the first byte and after the last."""
    name = f"{flow}.received" if f"{flow}.received" in result.series else flow
    table = result.series[name]
    bits = [0.0] * steps
    for t, received in zip(table["t_s"], table["received_bytes"]):
        place = int((t + 1e-9) / STEP_S)
        if received is not None and place < steps:
            bits[place] += 8 * received
    seen = [n for n, value in enumerate(bits) if value]
    first, last = (seen[0], seen[-1]) if seen else (steps, -1)
    return [value / STEP_S / 1e6 if first <= n <= last else None for n, value in enumerate(bits)]


def _pings(result: Result, steps: int) -> List[Optional[float]]:
    """Return the mean round-trip time in milliseconds of each step."""
    table = result.series["ping.0"]
    found: List[List[Optional[float]]] = [[] for _ in range(steps)]
    for t, rtt in zip(table["t_s"], table["rtt_us"]):
        place = int((t + 1e-9) / STEP_S)
        if rtt is not None and place < steps:
            found[place].append(rtt / 1e3)
    return [_mean(values) for values in found]


def _sum(values: Sequence[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _mean(values: Sequence[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
