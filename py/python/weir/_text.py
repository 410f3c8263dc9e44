"""Experiments and changes as the text that Weir reads."""

from __future__ import annotations

import datetime
import operator
import os
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Tuple, Union

import tomli_w

from ._weir import ExperimentError

#: An experiment: the path of a file, or a dict of what such a file says.
Experiment = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: Deepest nesting of lists and dicts. The keys of experiments need five.
DEEPEST = 32
#: Decimals of a number below one, such as a probability, and the least number that has not fewer digits of use.
DECIMALS, FINE = 12, 1e-6
#: Most values of a sweep's list that are looked at: one more than Weir takes, so that it says so.
MOST_VALUES = 10_001


def of(experiment: Experiment) -> Tuple[str, str]:
    """Return the name of an experiment for messages, and its text."""
    if isinstance(experiment, Mapping):
        return "<dict>", text({key: plain(value, str(key)) for key, value in experiment.items()})
    path = Path(experiment)
    try:
        return str(path), path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: no text in UTF-8: {error.reason} at byte {error.start}") from None


def changes(values: Mapping[str, Any]) -> str:
    """Return changes as lines of TOML. ``a__b`` is ``a.b``, since keywords have no dots."""
    dotted = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            raise TypeError(f"{key}: a dict; change its keys one by one: {key}.KEY")
        path = key.replace("__", ".")
        if path in dotted:
            raise TypeError(f"`{path}` is there twice")
        dotted[path] = plain(value, path)
    return text(dotted)


def lists(over: Mapping[str, Iterable[Any]]) -> Dict[str, List[Any]]:
    """Return the lists of a sweep by the path of their key, as changes."""
    if not isinstance(over, Mapping):
        raise TypeError(f"a sweep is over a dict of lists by the path of their key, not a {kind(over)}")
    found = {}
    for path, values in over.items():
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            raise TypeError(f"{path}: a sweep needs a list of values, not a {kind(values)}")
        found[f"sweep__{path}"] = list(islice(values, MOST_VALUES))
    return found


def whole(name: str, value: Any, most: int) -> int:
    """Return an argument that is a whole number from 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a whole number is expected, not a {kind(value)}") from None
    if not 1 <= number <= most:
        raise ValueError(f"{name} is {number}: it must be 1 to {most}")
    return number


def plain(value: Any, place: str, depth: int = 0) -> Any:
    """Return a value as TOML has it. Numbers and arrays of NumPy are taken for Python's, paths for texts."""
    if depth > DEEPEST:
        raise ExperimentError(f"`{place[:80]}`: nested too deeply")
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(below, f"{place}.{key}", depth + 1) for key, below in value.items()}
    if isinstance(value, float) and FINE <= abs(value) < 1:
        # Quotients have more digits than probabilities have: 1/60 is 0.016666666667.
        return round(value, DECIMALS)
    if isinstance(value, (bool, int, float, datetime.date, datetime.time)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple, range)):
        return [plain(below, f"{place}.{number}", depth + 1) for number, below in enumerate(value)]
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return plain(value.tolist(), place, depth + 1)
    if value is None:
        raise ExperimentError(f"`{place}` is None: leave the key out")
    raise ExperimentError(f"`{place}`: a {kind(value)} is no value of an experiment")


def text(values: Mapping[str, Any]) -> str:
    """Return a dict as TOML."""
    try:
        found = tomli_w.dumps(values)
        found.encode()
    except UnicodeEncodeError as error:
        raise ExperimentError(f"a text with half a character, {error.object[error.start]!r}") from None
    except (TypeError, ValueError) as error:
        # A key that is no text, or one of the times that TOML does not have.
        raise ExperimentError(f"<dict>: {error}") from None
    return found


def kind(value: Any) -> str:
    """Return the name of a value's type."""
    return type(value).__name__
