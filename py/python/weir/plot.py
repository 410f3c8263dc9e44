"""Figures for papers, by the chart writer of ``weir … --out``.

Each function returns a :class:`Figure`, which a notebook shows and ``save`` writes as SVG or PDF. Colours are
told apart in grey too, by dashes and marks. A figure has no headline unless ``title`` gives one.

Examples
--------
>>> import weir
>>> result = weir.sim({
...     "name": "two", "duration": "10s", "flow": [{"id": "a"}, {"id": "b", "start": "3s"}],
...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms", "queue": "1bdp"}},
... })
>>> weir.plot.series(result, "goodput_bps").svg("column").startswith("<svg")
True
"""

from __future__ import annotations

from typing import Optional, Sequence, Union

from . import _weir
from ._results import Result, Results
from ._weir import Figure

__all__ = ["Figure", "cdf", "fairness", "queue", "series", "sweep"]


def series(result: Result, what: str = "goodput_bps", of: Sequence[str] = (), *, title: str = "") -> Figure:
    """Draw something over time.

    Parameters
    ----------
    result : Result
        A run.
    what : str
        A column of its ``series``, such as ``cwnd_packets`` or ``queue_delay_us``, or ``goodput_bps``.
    of : sequence of str
        Names of the flows, groups and links to draw; by default all that have it.
    title : str
        Headline.

    Raises
    ------
    ValueError
        If nothing has such a column.
    """
    return _weir.plot_series([result._run], what, list(of), title)


def cdf(
    results: Union[Result, Results], what: str, of: Sequence[str] = (), *, title: str = ""
) -> Figure:
    """Draw a distribution, with a curve for each group of flows or link and combination of settings.

    Parameters
    ----------
    results : Result or Results
        A run, or several.
    what : str
        A metric of flows, such as ``fct_s``: the share of the flows of all runs. Or a column of ``series``,
        such as ``queue_delay_us``: the share of time.
    of : sequence of str
        Names of the flows, groups and links to draw; by default all that have it.
    title : str
        Headline.

    Raises
    ------
    ValueError
        If no run has such values.
    """
    return _weir.plot_cdf(_runs(results), what, list(of), title)


def sweep(results: Results, over: str, what: str = "goodput_bps", *, title: str = "") -> Figure:
    """Draw a quantity over a setting of a sweep: means over seeds, with 95 % confidence bands.

    Parameters
    ----------
    results : Results
        The runs.
    over : str
        The setting, such as ``path.wan.delay``. There is a line for each combination of the others.
    what : str
        A metric of flows (``rtt_us.p50``), one of a link (``wan.out.queue_us.p99``), or ``fairness``.
    title : str
        Headline.

    Raises
    ------
    ValueError
        If the runs have no such setting or quantity.

    Examples
    --------
    >>> import weir
    >>> bulk = {
    ...     "name": "bulk", "duration": "2s", "flow": [{"id": "a"}],
    ...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms", "loss": "1%"}},
    ... }
    >>> runs = weir.sweep(bulk, {"path.wan.delay": ["10ms", "40ms"]}, seeds=3)
    >>> weir.plot.sweep(runs, "path.wan.delay").pdf()[:8]
    b'%PDF-1.4'
    """
    return _weir.plot_sweep(_runs(results), over, what, title)


def fairness(
    results: Union[Result, Results], over: Optional[str] = None, *, title: str = ""
) -> Figure:
    """Draw how equally flows share: Jain's index, 1 where all have the same.

    Parameters
    ----------
    results : Result or Results
        A run, whose flows are drawn over time, or a sweep.
    over : str, optional
        The setting of the sweep.
    title : str
        Headline.

    Raises
    ------
    ValueError
        If no two flows send at the same time, or a sweep comes without its setting.
    """
    if over is not None:
        return _weir.plot_sweep(_runs(results), over, "fairness", title)
    if isinstance(results, Results):
        raise ValueError("a sweep is drawn over a setting: fairness(results, over=...)")
    return _weir.plot_fairness([results._run], title)


def queue(
    results: Union[Result, Results], link: str = "wan.out", by: Optional[str] = None, *, title: str = ""
) -> Figure:
    """Draw the throughput of a link against the delay of its queue, a point for each combination of settings.

    Parameters
    ----------
    results : Result or Results
        A run, or several. A point is the mean over seeds, with 95 % confidence intervals.
    link : str
        Name of the link.
    by : str, optional
        The setting that colours stand for, by default the first. Other settings are written at the points.
    title : str
        Headline.

    Raises
    ------
    ValueError
        If no run has such a link with a queue, or no such setting.
    """
    return _weir.plot_queue(_runs(results), link, by, title)


def _runs(results: Union[Result, Results]) -> Sequence[_weir.Run]:
    return results._runs if isinstance(results, Results) else [results._run]
