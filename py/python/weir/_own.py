"""Congestion controls and queue disciplines as Python classes."""

from __future__ import annotations

from typing import Callable, Optional, Tuple, Type, TypeVar, Union

from . import _weir
from ._weir import AckInfo, PacketInfo, QueueLength, Window

Class = TypeVar("Class")


class CongestionControl:
    """Congestion control of one flow. A class that extends this is added by :func:`congestion_control`.

    The simulated sender finds and repairs losses, keeps the window during recovery and after a time-out,
    and undoes spurious reductions. Quantities are bytes and times nanoseconds. Methods that the class does
    not define are not called.

    Parameters
    ----------
    seed : int
        Seed for random choices of this flow.
    """

    #: True if the class sets ``cwnd`` during recovery too.
    owns_recovery: bool = False
    #: True if the receiver shall echo every mark (DCTCP, RFC 8257).
    wants_dctcp_ecn: bool = False

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_ack(self, window: Window, ack: AckInfo) -> None:
        """React to an ACK. While ``ack.reduces``, the sender sets the window itself."""
        raise NotImplementedError

    def on_congestion(self, window: Window, now_ns: int, in_flight: int, reason: str) -> None:
        """Set ``window.ssthresh``, to which the window falls: by "loss", "ecn" or "timeout"."""
        raise NotImplementedError

    def on_established(self, window: Window, now_ns: int, rtt_ns: Optional[int]) -> None:
        """React to the end of the handshake."""

    def on_timeout(self, window: Window, now_ns: int) -> None:
        """React to an expiry of the retransmission timer."""

    def on_recovered(self, window: Window, now_ns: int) -> None:
        """React to the end of a recovery."""

    def on_undo(self, window: Window, now_ns: int) -> None:
        """React to a reduction that was undone."""

    def on_restart(self, window: Window, now_ns: int, idle_ns: int) -> None:
        """React to sending again after nothing was in flight."""

    def on_lost(self, lost: int) -> None:
        """Learn of bytes that are found lost."""

    def on_send(self, window: Window, now_ns: int, length: int, in_flight: int) -> Optional[int]:
        """Return the least time until the next segment, or None to leave it to the sender."""
        return None


class QueueDiscipline:
    """Discipline of one queue. A class that extends this is added by :func:`queue_discipline`.

    Weir holds the packets, in bands, first in, first out in each; it keeps the limit and counts. The class
    decides. Methods that it does not define are not called.

    Parameters
    ----------
    seed : int
        Seed for random choices of this queue.
    """

    #: Number of bands.
    bands: int = 1

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_arrival(
        self, now_ns: int, packet: PacketInfo, queue: QueueLength
    ) -> Union[str, Tuple[str, int]]:
        """Return "keep", "mark" or "drop"; with more than one band ``("keep", band)``.

        A packet that is not ECN-capable is dropped instead of marked.
        """
        raise NotImplementedError

    def next(self, queue: QueueLength) -> int:
        """Return the band whose first packet leaves next; by default the first that has one."""
        return 0

    def on_departure(self, now_ns: int, packet: PacketInfo, queue: QueueLength) -> str:
        """Return "send", "mark" or "drop" for the packet that could leave."""
        return "send"


def congestion_control(
    name: str, *, version: Optional[str] = None
) -> Callable[[Type[Class]], Type[Class]]:
    """Add a class as a congestion control: experiments then say ``cc = "NAME"``.

    It runs in the interpreter, a hundred times slower than those of Weir. An exception ends the run with
    :class:`RunError`, whose text has the traceback.

    Parameters
    ----------
    name : str
        1 to 64 letters, digits, ``-`` and ``_``. A later class replaces an earlier one.
    version : str, optional
        Tells apart the results of different states of the class, in stores of results. Without it no
        store takes them.

    Raises
    ------
    ValueError
        If the name is not one, or Weir has a congestion control with this name.

    Examples
    --------
    >>> import weir
    >>> @weir.congestion_control("scalable")
    ... class Scalable(weir.CongestionControl):
    ...     def on_ack(self, window, ack):
    ...         if not ack.reduces and ack.cwnd_limited:
    ...             slow = window.cwnd < window.ssthresh
    ...             window.cwnd += ack.growth if slow else ack.growth // 100
    ...     def on_congestion(self, window, now_ns, in_flight, reason):
    ...         window.ssthresh = max(window.cwnd * 7 // 8, 2 * window.mss)
    >>> result = weir.sim({
    ...     "name": "own", "duration": "5s", "flow": [{"id": "a", "cc": "scalable"}],
    ...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms", "queue": "1bdp"}},
    ... })
    >>> 9.0e6 < result.flows["goodput_bps"][0] < 10.0e6
    True
    """

    def add(make: Type[Class]) -> Type[Class]:
        _weir.add_congestion_control(name, make, CongestionControl, version)
        return make

    return add


def queue_discipline(
    name: str, *, version: Optional[str] = None
) -> Callable[[Type[Class]], Type[Class]]:
    """Add a class as a queue discipline: links then say ``aqm = "NAME"``.

    Parameters
    ----------
    name : str
        1 to 64 letters, digits, ``-`` and ``_``. A later class replaces an earlier one.
    version : str, optional
        As for :func:`congestion_control`.

    Raises
    ------
    ValueError
        If the name is not one, or Weir has a discipline with this name.

    Examples
    --------
    >>> import weir
    >>> @weir.queue_discipline("short")
    ... class Short(weir.QueueDiscipline):
    ...     def on_arrival(self, now_ns, packet, queue):
    ...         return "drop" if queue.packets >= 5 else "keep"
    >>> result = weir.sim({
    ...     "name": "own", "duration": "5s", "flow": [{"id": "a"}],
    ...     "path": {"wan": {"rate": "10Mbit", "delay": "20ms", "queue": "100p", "aqm": "short"}},
    ... })
    >>> max(filter(None, result.links["queue_us.max"])) < 6 * 1.25e3  # a frame takes 1.2 ms
    True
    """

    def add(make: Type[Class]) -> Type[Class]:
        _weir.add_queue_discipline(name, make, QueueDiscipline, version)
        return make

    return add
