"""Experiments with TCP: in virtual time, and with the kernel's TCP in network namespaces.

One experiment, a file or a dict, runs in both worlds. Results are tables that pandas, polars, DuckDB
and PyArrow read through Arrow's C stream interface; none of them is required.

Examples
--------
>>> import weir
>>> result = weir.sim({
...     "name": "bottleneck",
...     "duration": "5s",
...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms"}},
...     "flow": [{"id": "bulk"}],
... })
>>> result.ok, len(result.flows)
(True, 1)
>>> 9.0e6 < result.flows["goodput_bps"][0] < 10.0e6
True
"""

from . import flent, plot
from ._own import CongestionControl, QueueDiscipline, congestion_control, queue_discipline
from ._results import Result, Results, Series, load
from ._runs import lab, sim, sweep
from ._weir import ExperimentError, RunError, Table

__all__ = [
    "CongestionControl",
    "ExperimentError",
    "QueueDiscipline",
    "Result",
    "Results",
    "RunError",
    "Series",
    "Table",
    "congestion_control",
    "flent",
    "lab",
    "load",
    "plot",
    "queue_discipline",
    "sim",
    "sweep",
]
