"""Results of runs."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Type, Union, overload

from . import _weir
from ._weir import ExperimentError, Run, RunError, Table


class Series(Mapping[str, Table]):
    """Series over time, by the name of their flow or link.

    Each is a table of ``t_s``, in seconds since the start of the run, and a column for each recorded
    value.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getitem__(self, name: str) -> Table:
        return _weir.series(self._run, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.series_names())

    def __len__(self) -> int:
        return len(self._run.series_names())


class Result:
    """Result of one run.

    Attributes
    ----------
    flows, links, classes : Table
        A row for each flow, direction of a link, and class of the gateway. Columns have the names of
        the result's JSON, with their units.
    series : Series
        Recordings over time.
    data : dict
        The whole result, as ``weir sim --json`` writes it.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def data(self) -> Dict[str, Any]:
        """The whole result, as ``weir sim --json`` writes it."""
        data: Dict[str, Any] = json.loads(self._run.json())
        return data

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self._run.experiment

    @property
    def world(self) -> str:
        """``sim`` (virtual time) or ``lab`` (the kernel's TCP)."""
        return self._run.world

    @property
    def status(self) -> str:
        """``ok``, ``failed`` (a check does not hold, or the run went wrong) or ``interrupted``."""
        return self._run.status

    @property
    def ok(self) -> bool:
        """True if the run is complete and all its checks hold."""
        return self.status == "ok"

    @property
    def error(self) -> Union[str, None]:
        """Reason why the run could not be made, or None."""
        return self._run.error

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self._run.seed

    @property
    def settings(self) -> Dict[str, Any]:
        """Settings of the sweep for this run, in base units."""
        return dict(self.data.get("settings", {}))

    @property
    def checks(self) -> List[Dict[str, Any]]:
        """Checks of the experiment, with what was found."""
        return list(self.data["expects"])

    @cached_property
    def flows(self) -> Table:
        """A row for each flow."""
        return _weir.flows([self._run])

    @cached_property
    def links(self) -> Table:
        """A row for each direction of a link."""
        return _weir.links([self._run])

    @cached_property
    def classes(self) -> Table:
        """A row for each class of the gateway."""
        return _weir.classes([self._run])

    @property
    def series(self) -> Series:
        """Recordings over time."""
        return Series(self._run)

    def __reduce__(self) -> Tuple[Type["Result"], Tuple[Run]]:
        return Result, (self._run,)

    def __repr__(self) -> str:
        return f"<weir.Result of {self.experiment}: {self.world}, seed {self.seed}, {self.status}>"


class Results(Sequence[Result]):
    """Results of several runs, in the order of the sweep.

    Its tables are of all runs together. The number of the run, its settings and its seed are the
    first columns.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)
        self._results = [Result(run) for run in self._runs]

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> "Results": ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Result, "Results"]:
        if isinstance(index, slice):
            return Results(self._runs[index])
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def ok(self) -> bool:
        """True if all runs are complete and all their checks hold."""
        return all(result.ok for result in self._results)

    @cached_property
    def flows(self) -> Table:
        """A row for each flow of each run."""
        return _weir.flows(self._runs, several=True)

    @cached_property
    def links(self) -> Table:
        """A row for each direction of a link of each run."""
        return _weir.links(self._runs, several=True)

    @cached_property
    def classes(self) -> Table:
        """A row for each class of each run."""
        return _weir.classes(self._runs, several=True)

    def __reduce__(self) -> Tuple[Type["Results"], Tuple[List[Run]]]:
        return Results, (self._runs,)

    def __repr__(self) -> str:
        return f"<weir.Results of {len(self)} runs>"


def load(path: Union[str, "os.PathLike[str]"]) -> Results:
    """Read a result file of ``weir sim``, ``weir lab`` or a sweep.

    Parameters
    ----------
    path : path-like
        The JSON file, or a directory that ``--out`` wrote.

    Returns
    -------
    Results
        Its runs; one for a file of one run.

    Raises
    ------
    ExperimentError
        If it is no result, or one of another schema; with its name.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "result.json"
    try:
        return Results(_weir.load(file.read_bytes()))
    except ExperimentError as error:
        raise ExperimentError(f"{file}: {error}") from None


def single(runs: Sequence[Run], name: str) -> Result:
    """Return the only one of some runs."""
    if len(runs) != 1:
        raise ExperimentError(f"{name}: {len(runs)} runs; use weir.sweep for a [sweep]")
    result = Result(runs[0])
    if result.error is not None:
        raise RunError(result.error)
    return result
