"""Congestion controls and queue disciplines that are Python classes."""

import pytest
import weir

PATH = {"rate": "10Mbit", "delay": "20ms", "queue": "1bdp"}
BULK = {"name": "own", "duration": "10s", "path": {"wan": PATH}, "flow": [{"id": "a", "cc": "py-reno"}]}


class Reno(weir.CongestionControl):
    """RFC 5681 with byte counting, as the simulator's own Reno does it: whole segments."""

    def __init__(self, seed):
        super().__init__(seed)
        self.counted = 0

    def on_ack(self, window, ack):
        if ack.reduces or not ack.cwnd_limited:
            return
        grown = ack.growth
        if window.cwnd < window.ssthresh:
            slow = min(grown, window.ssthresh - window.cwnd)
            window.cwnd += slow
            grown -= slow
        self.counted += grown
        while self.counted >= window.cwnd:
            self.counted -= window.cwnd
            window.cwnd += window.mss

    def on_congestion(self, window, now_ns, in_flight, reason):
        half = window.cwnd // window.mss // 2 * window.mss
        window.ssthresh = max(half, 2 * window.mss)
        self.counted = 0


def test_a_class_does_what_the_simulator_s_reno_does():
    weir.congestion_control("py-reno")(Reno)
    own, built_in = weir.sim(BULK), weir.sim(BULK, flow__a__cc="reno")
    assert own.flows["cc"] == ["py-reno"]
    assert own.flows["goodput_bps"][0] == pytest.approx(built_in.flows["goodput_bps"][0], rel=0.02)
    assert own.flows["retransmits"][0] == pytest.approx(built_in.flows["retransmits"][0], abs=20)


def test_a_seed_gives_the_same_run():
    @weir.congestion_control("py-random")
    class Random(Reno):
        def __init__(self, seed):
            import random

            super().__init__(seed)
            self.random = random.Random(seed)

        def on_send(self, window, now_ns, length, in_flight):
            return self.random.randrange(1_000_000)

    bytes_of = lambda seed: weir.sim(BULK, flow__a__cc="py-random", seed=seed).flows["bytes"]
    assert bytes_of(1) == bytes_of(1) != bytes_of(2)


def test_an_exception_ends_its_run_with_its_traceback():
    @weir.congestion_control("py-broken")
    class Broken(Reno):
        def on_congestion(self, window, now_ns, in_flight, reason):
            raise ZeroDivisionError("no window")

    with pytest.raises(weir.RunError, match=r"(?s)`py-broken` raised ZeroDivisionError.*in on_congestion"):
        weir.sim(BULK, flow__a__cc="py-broken")
    runs = weir.sweep(BULK, {"flow.a.cc": ["py-broken", "reno"]})
    assert [run.error is None for run in runs] == [False, True]


def test_values_that_cannot_be_windows_end_the_run():
    @weir.congestion_control("py-negative")
    class Negative(Reno):
        def on_congestion(self, window, now_ns, in_flight, reason):
            window.ssthresh = -1

    with pytest.raises(weir.RunError, match="OverflowError"):
        weir.sim(BULK, flow__a__cc="py-negative")


def test_names():
    for name, reason in [("cubic", "Weir has a `cubic` itself"), ("a b", "is not a name")]:
        with pytest.raises(ValueError, match=reason):
            weir.congestion_control(name)(Reno)
    with pytest.raises(ValueError, match="Weir has a `codel` itself"):
        weir.queue_discipline("codel")(weir.QueueDiscipline)
    with pytest.raises(TypeError, match="a class is expected"):
        weir.congestion_control("py-none")(None)


def test_a_store_asks_for_a_version(tmp_path):
    weir.congestion_control("py-kept")(Reno)
    kept = {**BULK, "duration": "1s", "flow": [{"id": "a", "cc": "py-kept"}]}
    with pytest.raises(weir.RunError, match="`py-kept` has no version"):
        weir.sweep(kept, store=tmp_path)
    weir.congestion_control("py-kept", version="1")(Reno)
    assert weir.sweep(kept, store=tmp_path).ok
    weir.congestion_control("py-kept", version="2")(Reno)
    assert weir.sweep(kept, store=tmp_path).ok
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_discipline_marks_and_drops():
    @weir.queue_discipline("py-step")
    class Step(weir.QueueDiscipline):
        def on_arrival(self, now_ns, packet, queue):
            return "mark" if queue.packets >= 10 else "keep"

    with_ecn = weir.sim(BULK, path__wan__aqm="py-step", path__wan__queue="100p", flow__a__ecn=True, flow__a__cc="reno")
    without = weir.sim(BULK, path__wan__aqm="py-step", path__wan__queue="100p", flow__a__cc="reno")
    marks, drops = (dict(zip(run.links["name"], run.links["marks"]))["wan.out"] for run in (with_ecn, without))
    # Packets that are not ECN-capable are dropped instead.
    assert marks > 0 and not drops
    assert without.flows["retransmits"][0] > 0 and with_ecn.flows["retransmits"][0] == 0
    # A frame takes 1.2 ms: ten of them and the one that is being sent.
    assert max(filter(None, without.links["queue_us.max"])) < 11 * 1220


def test_bands_and_departures():
    @weir.queue_discipline("py-bands")
    class Bands(weir.QueueDiscipline):
        bands = 2

        def on_arrival(self, now_ns, packet, queue):
            return "keep", int(packet.bytes > 200)

        def next(self, queue):
            return 0 if queue.band_packets[0] else 1

        def on_departure(self, now_ns, packet, queue):
            assert now_ns >= packet.since_ns
            return "send"

    game = {"id": "game", "app_rate": "100kbit", "mss": 100, "delayed_ack": 1}
    both = {**BULK, "flow": [{"id": "a", "cc": "reno"}, game]}
    result = weir.sim(both, path__wan__aqm="py-bands", path__wan__queue="100p")
    # The path takes 40 ms, and one full frame 1.2 ms.
    assert 40_000 <= result.flows["rtt_us.p50"][1] < 41_700

    @weir.queue_discipline("py-wrong")
    class Wrong(weir.QueueDiscipline):
        def on_arrival(self, now_ns, packet, queue):
            return "hold"

    with pytest.raises(weir.RunError, match='`py-wrong` raised ValueError: on_arrival returned "hold"'):
        weir.sim(BULK, path__wan__aqm="py-wrong", flow__a__cc="reno")


@pytest.mark.parametrize(
    "rules, reason",
    [
        ({"on_arrival": lambda *_: ("keep", 2)}, "on_arrival returned 2: it returns a band below 2"),
        ({"on_arrival": lambda *_: ("keep", -1)}, "OverflowError"),
        ({"on_arrival": lambda *_: ("keep",)}, "tuple of length 2"),
        ({"next": lambda *_: 2}, "next returned 2: it returns a band below 2"),
        ({"next": lambda *_: None}, "TypeError"),
        ({"bands": 0}, "0 bands: 1 to 65536 are possible"),
        ({"bands": 10**9}, "1000000000 bands"),
    ],
)
def test_bands_that_there_are_not_end_the_run(rules, reason):
    both = {"bands": 2, "on_arrival": lambda *_: "keep", **rules}
    weir.queue_discipline("py-bands-wrong")(type("Wrong", (weir.QueueDiscipline,), both))
    with pytest.raises(weir.RunError, match=f"`py-bands-wrong` raised .*{reason}"):
        weir.sim(BULK, path__wan__aqm="py-bands-wrong", flow__a__cc="reno")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError()])
def test_any_exception_ends_its_run_only(error):
    class Ends(Reno):
        def on_ack(self, window, ack):
            raise error

    weir.congestion_control("py-ends")(Ends)
    runs = weir.sweep(BULK, {"flow.a.cc": ["py-ends", "reno"]}, duration="2s")
    assert [run.error is None for run in runs] == [False, True]
    assert type(error).__name__ in runs[0].error
