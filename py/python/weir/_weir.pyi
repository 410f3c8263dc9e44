"""Private extension: runs, result files, and tables."""

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union, final

__all__ = [
    "ExperimentError",
    "Run",
    "RunError",
    "Table",
    "check_for_lab",
    "classes",
    "flows",
    "links",
    "load",
    "series",
    "simulate",
    "simulate_kept",
]

class ExperimentError(ValueError):
    """An experiment or a result is wrong."""

    faults: List[Tuple[str, int, int, str, Optional[str]]]

class RunError(RuntimeError):
    """A run could not be made."""

@final
class Run:
    def json(self) -> str: ...
    def series_names(self) -> List[str]: ...

@final
class Table:
    @property
    def columns(self) -> List[str]: ...
    @property
    def about(self) -> Dict[str, str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> List[Any]: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

def simulate(
    name: str, text: str, changes: str, seeds: int = 1, jobs: Optional[int] = None
) -> List[Run]: ...
def simulate_kept(
    name: str,
    text: str,
    changes: str,
    store: Union[str, os.PathLike[str]],
    library: Union[str, os.PathLike[str]],
    seeds: int = 1,
    jobs: Optional[int] = None,
) -> List[Run]: ...
def check_for_lab(name: str, text: str, changes: str) -> None: ...
def load(text: str) -> List[Run]: ...
def flows(runs: Sequence[Run], several: bool = False) -> Table: ...
def links(runs: Sequence[Run], several: bool = False) -> Table: ...
def classes(runs: Sequence[Run], several: bool = False) -> Table: ...
def series(run: Run, name: str) -> Table: ...
