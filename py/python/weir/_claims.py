"""Claims on runs, by which sweeps at one store tell each other what they are making.

A claim is an object that the store creates only if it is not there: ``.KEY.N.claim``. Its holder writes it
again every few seconds. A claim that stays the same for longer is of a lost worker, and the claim with the
next number takes its place. So no clock is compared with another machine's, and nothing that someone else
may hold is removed.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any, Dict, Optional, Tuple

#: Seconds between two signs of life of a holder.
BEAT = 5.0
#: Seconds without a sign of life after which a holder counts as lost.
LOST = 30.0


class Claim:
    """Claim that this process holds. Leaving its context gives it up.

    Parameters
    ----------
    files : fsspec.AbstractFileSystem
        Store.
    stem : str
        Path of the claims of a run, without number.
    number : int, optional
        Number of the claim; None in a store that cannot create objects exclusively.
    sweep : str
        Name of the sweep.
    """

    def __init__(self, files: Any, stem: str, number: Optional[int], sweep: str) -> None:
        self._files, self._stem, self._number, self._sweep = files, stem, number, sweep
        self._over = threading.Event()
        self._beats: Optional[threading.Thread] = None

    def __enter__(self) -> "Claim":
        if self._number is not None:
            self._beats = threading.Thread(target=self._live, daemon=True)
            self._beats.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._number is None or self._beats is None:
            return
        self._beats.join()
        for number in range(self._number + 1):
            try:
                self._files.rm_file(path(self._stem, number))
            except Exception:  # It is gone, or the store is: then others wait until it counts as lost.
                pass

    def _live(self) -> None:
        while not self._over.wait(BEAT):
            try:
                with self._files.open(path(self._stem, self._number or 0), "wb") as file:
                    file.write(content(self._sweep))
            except Exception:  # A store that is away for a while: the next beat tries again.
                pass


def path(stem: str, number: int) -> str:
    """Return the path of a claim."""
    return f"{stem}.{number}.claim"


def content(sweep: str) -> bytes:
    """Return the content of a claim: its sweep, and a mark that no other writing has."""
    return f"{sweep} {uuid.uuid4().hex}".encode()


class Claims:
    """Claims in a store.

    Parameters
    ----------
    files : fsspec.AbstractFileSystem
        Store.
    """

    def __init__(self, files: Any) -> None:
        self._files = files
        #: Content of others' claims, and since when it is this.
        self._seen: Dict[str, Tuple[bytes, float]] = {}

    def take(self, stem: str, sweep: str) -> Optional[Claim]:
        """Take the claim on a run, or return None while another sweep makes it.

        A claim of the same sweep is of a worker that its scheduler has given up.
        """
        number = 0
        while True:
            taken = self._create(path(stem, number), content(sweep))
            if taken is None:
                return Claim(self._files, stem, None, sweep)
            if taken:
                return Claim(self._files, stem, number, sweep)
            if not self._lost(path(stem, number), sweep):
                return None
            number += 1

    def _create(self, name: str, value: bytes) -> Optional[bool]:
        """Create an object; False if it is there, None if the store cannot tell."""
        try:
            with self._files.open(name, "xb") as file:
                file.write(value)
        except (NotImplementedError, ValueError):
            return None
        except FileExistsError:
            return False
        except Exception:
            if self._files.exists(name):
                return False
            raise
        return True

    def _lost(self, name: str, sweep: str) -> bool:
        try:
            with self._files.open(name, "rb") as file:
                found = bytes(file.read())
        except FileNotFoundError:
            return False
        if found.startswith(f"{sweep} ".encode()):
            return True
        # A claim is empty between its creation and its first writing.
        before = self._seen.get(name)
        if before is None or before[0] != found:
            self._seen[name] = (found, time.monotonic())
            return False
        return time.monotonic() - before[1] > LOST
