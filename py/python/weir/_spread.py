"""Sweeps whose runs are made one by one: by threads, or by workers on other machines."""

from __future__ import annotations

import sys
import time
import uuid
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from functools import lru_cache
from importlib import import_module
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Sequence, Tuple

from . import _weir
from ._results import Results
from ._store import Store
from ._weir import ExperimentError, Run, RunError, Sweep


#: Seconds between looks at runs that another sweep makes.
PAUSE = 0.2

#: Number of a run, and a function that returns its result, or None while another sweep makes it.
Outcome = Tuple[int, Callable[[], Optional[Run]]]


class Spec(NamedTuple):
    """What decides the runs of a sweep, and where they are kept."""

    name: str
    text: str
    changes: str
    seeds: int
    store: Optional[str]
    version: str
    sweep: str
    #: Key of the first run, where there is a store.
    first: Optional[str]


@lru_cache(maxsize=1)
def version() -> str:
    """Return the version of this installation: its number, and a hash of the extension's file."""
    return _weir.version(str(_weir.__file__))


def same_version(found: str, spec: Spec, who: str) -> None:
    """Refuse a worker of another version."""
    if found != spec.version:
        raise RunError(f"{who} has Weir {found}, the sweep is of {spec.version}: install the same on both")


@lru_cache(maxsize=8)
def planned(name: str, text: str, changes: str, seeds: int) -> Sweep:
    """Return the planned runs; a worker plans once for many runs."""
    return Sweep(name, text, changes, seeds)


@lru_cache(maxsize=8)
def opened(url: str) -> Store:
    """Return a store."""
    return Store(url)


def make(spec: Spec, number: int) -> Optional[Run]:
    """Make one run, unless it is in the store, and return its result; None if it is made elsewhere."""
    same_version(version(), spec, "this worker")
    runs = planned(spec.name, spec.text, spec.changes, spec.seeds)
    if spec.store is None:
        return runs.make(number)
    if runs.key(0, spec.version) != spec.first:
        raise RunError(
            "this worker has another version of a congestion control or a queue discipline: add the same "
            "class on both"
        )
    if "://" not in spec.store:
        return runs.make_kept(number, spec.store, str(_weir.__file__))
    store, key = opened(spec.store), runs.key(number, spec.version)
    found = store.get(key)
    if found is not None:
        return found
    claim = store.claim(key, spec.sweep)
    if claim is None:
        return None
    with claim:
        # Another sweep may have made it between the look and the claim.
        found = store.get(key)
        if found is not None:
            return found
        run = runs.make(number)
        if not run.failed():
            try:
                store.put(key, run)
            except RunError as error:
                # What is made and cannot be kept is handed over all the same.
                error.unkept = run
                raise
        return run


class Progress:
    """Line on a terminal: runs that are made, and the time that is left."""

    def __init__(self, runs: int) -> None:
        self._runs, self._made, self._began = runs, 0, time.monotonic()
        self._shown = sys.stderr.isatty()

    def one(self) -> None:
        """Count a run."""
        self._made += 1
        if self._shown:
            left = (time.monotonic() - self._began) / self._made * (self._runs - self._made)
            print(f"\r{self._made} of {self._runs} runs, {left:.0f} s left ", end="", file=sys.stderr)

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr)


def by_threads(spec: Spec, jobs: Optional[int], runs: Sequence[int]) -> Generator[Outcome, None, None]:
    """Make these runs on this machine, and yield each when it is made."""
    with ThreadPoolExecutor(jobs or _weir.processors()) as pool:
        numbers: Dict[Future[Optional[Run]], int] = {pool.submit(make, spec, n): n for n in runs}
        try:
            left = set(numbers)
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for future in done:
                    yield numbers[future], future.result
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            planned(*spec[:4]).stop()
            planned.cache_clear()
            raise


def given_back(run: Optional[Run]) -> Callable[[], Optional[Run]]:
    """Return a function that returns this run."""
    return lambda: run


def by_dask(spec: Spec, client: Any, runs: Sequence[int]) -> Generator[Outcome, None, None]:
    """Make these runs by the workers of a Dask client, and yield each when it is made."""
    as_completed: Any = import_module("dask.distributed").as_completed

    # Tasks of a module that a worker cannot load would end that worker, and the next one. Those that come
    # later are asked with each run.
    asked = client.run(version, on_error="return")
    if not asked:
        print("weir: the cluster has no worker yet: the sweep begins with the first", file=sys.stderr)
    for worker, found in asked.items():
        if isinstance(found, str):
            same_version(found, spec, f"the worker {worker}")
        elif any(name in repr(found) for name in ("ModuleNotFoundError", "ImportError", "AttributeError")):
            # The scheduler hands on errors of workers as text. Others are of workers that are just lost.
            raise RunError(f"the worker {worker} cannot load this Weir: {found}; install the same on both")
    # A future, not data of one worker: it can be made again if that worker is lost.
    given = client.submit(Spec, *spec, pure=False)
    futures = client.map(make, [given] * len(runs), list(runs), pure=False, retries=0, batch_size=1000)
    numbers = {future.key: n for n, future in zip(runs, futures)}
    try:
        # Results are fetched together, as many as there are at the time.
        for future, result in as_completed(futures, with_results=True, raise_errors=False):
            # After an error, asking for the result raises it.
            yield numbers[future.key], future.result if future.status == "error" else given_back(result)
            # What is read need not stay on the worker, nor be made again when that is lost.
            future.release()
    except BaseException:
        client.cancel(futures)
        raise


def collect(
    each: Generator[Outcome, None, None], made: List[Optional[Run]], runs: Sweep, progress: Progress
) -> List[int]:
    """Take in results, and return the numbers of the runs that other sweeps are making."""
    elsewhere = []
    for number, result in each:
        try:
            run = result()
        except RunError as error:
            made[number] = getattr(error, "unkept", None)
            raise
        except ExperimentError:
            raise
        except Exception as error:
            # Several workers in turn were lost with this run.
            made[number] = runs.failed(number, f"{type(error).__name__}: {error}")
        else:
            if run is None:
                elsewhere.append(number)
                continue
            made[number] = run
        progress.one()
    return elsewhere


def sweep(
    name: str,
    text: str,
    changes: str,
    seeds: int,
    jobs: Optional[int],
    store: Optional[str],
    client: Any,
) -> List[Run]:
    """Make the runs of a sweep, and return them in their order."""
    if client is not None and (not hasattr(client, "scheduler_info") or client.asynchronous):
        raise TypeError(f"client: a dask.distributed.Client that waits is expected, not {client!r}")
    runs = planned(name, text, changes, seeds)
    first = None
    if store is not None:
        # A store that cannot be reached, or that refuses the sweep, is known before any run.
        first = runs.key(0, version())
        if "://" in store:
            opened(store).check()
    spec = Spec(name, text, changes, seeds, store, version(), uuid.uuid4().hex, first)
    made: List[Optional[Run]] = [None] * len(runs)
    progress = Progress(len(runs))
    left: Sequence[int] = range(len(runs))
    try:
        while left:
            each = by_threads(spec, jobs, left) if client is None else by_dask(spec, client, left)
            # An error here ends what is still being made.
            with closing(each):
                left = collect(each, made, runs, progress)
            if left:
                time.sleep(PAUSE)
    except RunError as error:
        error.results = Results([run for run in made if run is not None])
        raise
    finally:
        progress.end()
    return [run for run in made if run is not None]
