"""Experiments and changes as the text that Weir reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Mapping, Tuple, Union

import tomli_w

#: An experiment: the path of a file, or a dict of what such a file says.
Experiment = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def of(experiment: Experiment) -> Tuple[str, str]:
    """Return the name of an experiment for messages, and its text."""
    if isinstance(experiment, Mapping):
        return "<dict>", tomli_w.dumps(dict(experiment))
    path = Path(experiment)
    return str(path), path.read_text(encoding="utf-8")


def changes(values: Mapping[str, Any]) -> str:
    """Return changes as lines of TOML. ``a__b`` is ``a.b``, since keywords have no dots."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            raise TypeError(f"{key}: a dict; change its keys one by one: {key}.KEY")
    dotted = {key.replace("__", "."): value for key, value in values.items()}
    return tomli_w.dumps(dotted)
