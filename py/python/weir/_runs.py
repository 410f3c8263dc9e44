"""Runs of experiments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Union

from . import _spread, _text, _weir
from ._results import Result, Results, load, single
from ._text import Experiment

#: Most seeds of a combination.
MOST_SEEDS = 100_000
#: Most runs at the same time.
MOST_JOBS = 1024


def sim(experiment: Experiment, **changes: Any) -> Result:
    """Run an experiment in virtual time.

    The interpreter's lock is free meanwhile, so that threads run several at the same time.

    Parameters
    ----------
    experiment : path-like or dict
        The experiment.
    **changes
        Other values for some of its keys, by their path: ``path__wan__rate="20Mbit"``, or
        ``**{"path.wan.rate": "20Mbit"}``. Rates, times and sizes are texts with their unit.

    Returns
    -------
    Result
        The result. A check that does not hold makes it one with ``ok`` False.

    Raises
    ------
    ExperimentError
        If the experiment is wrong: each fault with its place, as ``weir check`` says it.
    RunError
        If the run could not be made.

    Examples
    --------
    >>> import weir
    >>> bulk = {
    ...     "name": "bulk", "duration": "5s", "flow": [{"id": "a"}],
    ...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms"}},
    ... }
    >>> slow = weir.sim(bulk, path__wan__rate="1Mbit")
    >>> 0.9e6 < slow.flows["goodput_bps"][0] < 1.0e6
    True
    """
    name, text = _text.of(experiment)
    return single(_weir.simulate(name, text, _text.changes(changes)), name)


def sweep(
    experiment: Experiment,
    over: Optional[Mapping[str, Iterable[Any]]] = None,
    *,
    seeds: int = 1,
    jobs: Optional[int] = None,
    store: Union[str, "os.PathLike[str]", None] = None,
    client: Any = None,
    **changes: Any,
) -> Results:
    """Run an experiment in virtual time with each combination of some values.

    The runs use all processors, or the workers of a Dask client. A terminal shows how many are made, and
    the time that is left.

    Parameters
    ----------
    experiment : path-like or dict
        The experiment; it may have a ``[sweep]`` of its own.
    over : dict of iterables, optional
        Values by the path of their key: ``{"path.wan.rate": ["10Mbit", "20Mbit"]}``.
    seeds : int
        Number of seeds for each combination.
    jobs : int, optional
        Most runs at the same time; by default one for each processor.
    store : path-like, optional
        Folder in which each run is kept; ``~`` is the home directory. Runs that are there are not made
        again; several processes, on several machines, may share it. A URL of fsspec, such as
        ``s3://bucket/folder``, keeps each run in a Parquet file with the table of its flows.
    client : dask.distributed.Client, optional
        Client whose workers make the runs. They need the same version of Weir, and a folder as ``store``
        is one of theirs. A worker that is lost loses only what it was making, and another one makes that.
    **changes
        Other values for some keys, as for :func:`sim`.

    Returns
    -------
    Results
        The runs, in the order of the combinations; the last value changes fastest, and the seeds of a
        combination stand together. A run that could not be made has an ``error`` and stops no other.

    Raises
    ------
    ExperimentError
        If the experiment is wrong.
    RunError
        If a worker has another version of Weir, or the store cannot be read or written. Runs that were
        kept stay, and with a store at a URL the error has all that were made, as ``results``.

    Examples
    --------
    >>> import weir
    >>> bulk = {
    ...     "name": "bulk", "duration": "2s", "flow": [{"id": "a"}],
    ...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms"}},
    ... }
    >>> runs = weir.sweep(bulk, {"path.wan.rate": ["1Mbit", "2Mbit"]}, seeds=2)
    >>> runs.flows["path.wan.rate"]
    [1000000.0, 1000000.0, 2000000.0, 2000000.0]
    """
    name, text = _text.of(experiment)
    changed = _text.changes({**changes, **_text.lists({} if over is None else over)})
    seeds = _text.whole("seeds", seeds, MOST_SEEDS)
    jobs = None if jobs is None else _text.whole("jobs", jobs, MOST_JOBS)
    kept = None if store is None else _place(store)
    if client is not None or kept is not None and "://" in kept:
        return Results(_spread.sweep(name, text, changed, seeds, jobs, kept, client))
    if kept is None:
        return Results(_weir.simulate(name, text, changed, seeds, jobs))
    library = str(_weir.__file__)
    return Results(_weir.simulate_kept(name, text, changed, kept, library, seeds, jobs))


def _place(store: Union[str, "os.PathLike[str]"]) -> str:
    """Return a folder or URL; `~` is the home directory."""
    place = os.fspath(store)
    if not isinstance(place, str) or not place:
        raise ValueError(f"store is {place!r}: a folder or a URL is expected")
    return place if "://" in place else os.path.expanduser(place)


def lab(experiment: Experiment, **changes: Any) -> Result:
    """Run an experiment with the kernel's TCP, in network namespaces. This needs Linux and root.

    It runs the program ``weir``: that of the variable ``WEIR``, or the one on the path.

    Parameters
    ----------
    experiment : path-like or dict
        The experiment.
    **changes
        Other values for some of its keys, as for :func:`sim`.

    Returns
    -------
    Result
        The result.

    Raises
    ------
    RunError
        If the program is missing, or the run could not be made; with what the program said.
    """
    name, text = _text.of(experiment)
    _weir.check_for_lab(name, text, _text.changes(changes))
    program = os.environ.get("WEIR") or shutil.which("weir")
    if program is None:
        raise _weir.RunError("no program `weir`: install it, or name it in the variable WEIR")
    with tempfile.TemporaryDirectory(prefix="weir-py-") as directory:
        result = Path(directory, "result.json")
        command = [program, "lab", "--json", str(result)]
        for key, value in changes.items():
            command += ["--set", f"{key.replace('__', '.')}={json.dumps(value)}"]
        if isinstance(experiment, Mapping):
            file = Path(directory, "experiment.toml")
            file.write_text(text, encoding="utf-8")
            command.append(str(file))
        else:
            command.append(name)
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if not result.exists():
            raise _weir.RunError(made.stderr.strip() or f"{program} ended with code {made.returncode}")
        return load(result)[0]
