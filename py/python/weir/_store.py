"""Results in a folder or object store, each in a Parquet file of its own.

The file ``KEY.parquet`` has the table of the run's flows, which any reader of Parquet reads, of one file or
of all. The whole result is in its metadata. The key is a hash of all that decides the result, Weir's version
included.
"""

from __future__ import annotations

import base64
import uuid
from importlib import import_module
from typing import Any, Optional

from . import _weir
from ._claims import Claim, Claims
from ._weir import Run, RunError

#: Entry of the metadata that has the whole result: its JSON, compressed by Zstandard, in Base64.
RESULT = b"weir"


def _module(name: str) -> Any:
    """Return a module that only stores need."""
    try:
        return import_module(name)
    except ImportError:
        what = name.split(".")[0]
        raise RunError(f"a store at a URL needs `{what}`: pip install 'weir[store]'") from None


class Store:
    """Results at a URL of fsspec: ``file:///…``, ``s3://…``, ``gs://…`` and others.

    Parameters
    ----------
    url : str
        Folder of the results.

    Raises
    ------
    RunError
        If the URL's kind is not known, or a module for it is missing.
    """

    def __init__(self, url: str) -> None:
        self._arrow, self._parquet = _module("pyarrow"), _module("pyarrow.parquet")
        self._url = url
        try:
            if url.startswith("://"):
                raise ValueError("a URL without a scheme")
            self._files, self._root = _module("fsspec.core").url_to_fs(url)
        except RunError:
            raise
        except Exception as error:  # Each kind of store has its own.
            raise RunError(f"{url}: {error}") from None
        self._claims = Claims(self._files)

    def check(self) -> None:
        """Make the folder, or say why it cannot be."""
        try:
            self._files.makedirs(self._root, exist_ok=True)
        except Exception as error:
            raise RunError(f"{self._url}: {error}") from error

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}.parquet"

    def claim(self, key: str, sweep: str) -> Optional[Claim]:
        """Take the claim on a run, or return None while another sweep makes it."""
        try:
            return self._claims.take(f"{self._root}/.{key}", sweep)
        except Exception as error:
            raise RunError(f"{self._url}/{key}.parquet: {error}") from error

    def get(self, key: str) -> Optional[Run]:
        """Return the result with this key, or None if it is not there."""
        try:
            with self._files.open(self._path(key), "rb") as file:
                metadata = self._parquet.read_metadata(file).metadata or {}
        except FileNotFoundError:
            return None
        except Exception as error:
            raise RunError(f"{self._url}/{key}.parquet: {error}") from error
        if RESULT not in metadata:
            raise RunError(f"{self._url}/{key}.parquet is no result of Weir: remove it")
        try:
            packed = self._arrow.BufferReader(base64.b64decode(metadata[RESULT]))
            with self._arrow.CompressedInputStream(packed, "zstd") as text:
                return Run.read(text.read())
        except (ValueError, OSError) as error:
            raise RunError(f"{self._url}/{key}.parquet: {error}") from None

    def put(self, key: str, run: Run) -> None:
        """Keep a result. It is there whole or not at all."""
        table = self._arrow.table(_weir.flows([run], several=True)).drop_columns(["run"])
        packed = self._arrow.Codec("zstd", 1).compress(run.json(), asbytes=True)
        path = self._path(key)
        part = f"{self._root}/.{key}.{uuid.uuid4().hex}.part"
        try:
            with self._files.open(part, "wb") as file:
                with self._parquet.ParquetWriter(file, table.schema, compression="zstd") as writer:
                    writer.write_table(table)
                    # Not metadata of the table: that is there twice, in Arrow's schema too.
                    writer.add_key_value_metadata({RESULT: base64.b64encode(packed)})
            self._files.mv(part, path)
        except Exception as error:
            raise RunError(f"{self._url}/{key}.parquet: {error}") from error
