"""Sweeps by workers, and results in Parquet."""

import base64
import os
import signal
import subprocess
import sys
import threading
import time

import fsspec
import polars
import pyarrow.parquet
import pytest
import weir
from dask.distributed import Client, LocalCluster

SWEEP = {
    "name": "spread",
    "duration": "2s",
    "path": {"wan": {"rate": "10Mbit", "delay": "20ms", "loss": "1%"}},
    "flow": [{"id": "a"}],
}
RATES = {"path.wan.rate": [f"{rate}Mbit" for rate in range(1, 11)]}


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            yield client


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/results"


def test_workers_make_what_this_process_would_make(client):
    here = weir.sweep(SWEEP, RATES, seeds=2)
    there = weir.sweep(SWEEP, RATES, seeds=2, client=client)
    assert there.ok and len(there) == 20
    assert there.flows["bytes"] == here.flows["bytes"]
    assert there.flows["path.wan.rate"] == here.flows["path.wan.rate"]
    assert [run.seed for run in there] == [run.seed for run in here]


def test_a_killed_worker_loses_no_run_and_none_is_made_twice(client, url, tmp_path):
    """Of 60 runs of some tenths of a second, a worker is killed while both are at work."""
    long = {**SWEEP, "duration": "60s"}

    def kill():
        while len(list(tmp_path.glob("results/*.parquet"))) < 5:
            time.sleep(0.05)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    made = weir.sweep(long, RATES, seeds=6, store=url, client=client)
    killer.join()
    assert len(made) == 60 and all(run.error is None for run in made)
    files = list(tmp_path.glob("results/*.parquet"))
    assert len(files) == 60
    # What is kept is not made again: no file is newer.
    times = {file: file.stat().st_mtime_ns for file in files}
    again = weir.sweep(long, RATES, seeds=6, store=url)
    assert again.flows["bytes"] == made.flows["bytes"]
    assert times == {file: file.stat().st_mtime_ns for file in tmp_path.glob("results/*.parquet")}


def test_a_cluster_without_workers_is_waited_for(capsys):
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            timer = threading.Timer(0.5, cluster.scale, [1])
            timer.start()
            made = weir.sweep(SWEEP, {"path.wan.rate": ["1Mbit", "2Mbit"]}, client=client)
            timer.join()
    assert len(made) == 2 and made.ok
    assert "the cluster has no worker yet" in capsys.readouterr().err


def test_a_worker_with_another_version_of_a_class_is_refused(client, url):
    def add(version):
        import weir

        @weir.congestion_control("mine", version=version)
        class Mine(weir.CongestionControl):
            def on_ack(self, window, ack):
                window.cwnd += ack.growth if window.cwnd < window.ssthresh else 0

            def on_congestion(self, window, now_ns, in_flight, reason):
                window.ssthresh = max(window.cwnd // 2, 2 * window.mss)

    add("1")
    client.run(add, "2")
    own = {**SWEEP, "flow": [{"id": "a", "cc": "mine"}]}
    with pytest.raises(weir.RunError, match="another version of a congestion control"):
        weir.sweep(own, RATES, store=url, client=client)
    client.run(add, "1")
    assert len(weir.sweep(own, RATES, store=url, client=client)) == 10


def test_a_worker_with_another_version_is_refused(client):
    def pretend():
        from weir import _spread

        _spread.version = lambda: "0.0.1 (0)"

    def undo():
        from weir import _spread

        import importlib

        importlib.reload(_spread)

    client.run(pretend)
    try:
        with pytest.raises(weir.RunError, match=r"worker tcp://\S+ has Weir 0\.0\.1 \(0\), the sweep is of"):
            weir.sweep(SWEEP, client=client)
    finally:
        client.run(undo)


def test_a_worker_without_weir_is_refused(client):
    def hide():
        sys.hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "weir"}
        sys.modules["weir"] = None

    def show():
        del sys.modules["weir"]
        sys.modules.update(sys.hidden)

    client.run(hide)
    try:
        with pytest.raises(weir.RunError, match="the worker tcp://.* cannot load this Weir: .*install the same"):
            weir.sweep(SWEEP, RATES, client=client)
    finally:
        client.run(show)
    assert weir.sweep(SWEEP, client=client).ok


def test_what_is_no_client_is_refused():
    for wrong in ["tcp://127.0.0.1:8786", 3, object()]:
        with pytest.raises(TypeError, match="client: a dask.distributed.Client"):
            weir.sweep(SWEEP, client=wrong)


@pytest.mark.parametrize("store", [None, "folder", "file://"])
def test_an_interruption_ends_a_sweep_and_not_the_process(store, tmp_path):
    place = None if store is None else f"{store if '://' in store else ''}{tmp_path}/results"
    code = (
        "import weir\n"
        f"long, store = {{**{SWEEP!r}, 'duration': '100000s'}}, {place!r}\n"
        "try:\n"
        "    weir.sweep(long, {'seed': range(40)}, jobs=2, store=store)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "print(weir.sweep(long, {'seed': range(4)}, jobs=2, store=store, duration='1s').ok)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\nTrue\n"
    assert not list(tmp_path.glob("results/.*")) and not list(tmp_path.glob("results/*.claim"))


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_that_goes_away_is_said(scheme, tmp_path):
    """The folder is moved while runs are made: what was kept is whole in it, and a sweep goes on there."""
    folder, away = tmp_path / "results", tmp_path / "away"

    def move():
        while len(list(folder.glob("[!.]*.[jp]*"))) < 5:
            time.sleep(0.01)
        folder.rename(away)
        folder.write_text("no folder")

    mover = threading.Thread(target=move)
    mover.start()
    with pytest.raises(weir.RunError, match="results"):
        weir.sweep({**SWEEP, "duration": "20s"}, RATES, seeds=6, store=f"{scheme}{folder}", jobs=2)
    mover.join()
    times = {file: file.stat().st_mtime_ns for file in away.glob("[!.]*.[jp]*")}
    assert len(times) >= 5
    again = weir.sweep({**SWEEP, "duration": "20s"}, RATES, seeds=6, store=f"{scheme}{away}", jobs=2)
    assert again.ok and len(again) == 60
    assert all(file.stat().st_mtime_ns == time for file, time in times.items())


def test_results_are_parquet_that_anything_reads(url, tmp_path):
    made = weir.sweep(SWEEP, RATES, store=url)
    flows = polars.read_parquet(f"{tmp_path}/results/*.parquet")
    assert sorted(flows["bytes"].to_list()) == sorted(made.flows["bytes"])
    assert set(flows["path.wan.rate"].to_list()) == set(made.flows["path.wan.rate"])
    # A sweep that grows makes only what is missing.
    more = weir.sweep(SWEEP, {"path.wan.rate": RATES["path.wan.rate"] + ["20Mbit"]}, store=url)
    assert len(list(tmp_path.glob("results/*.parquet"))) == 11
    assert more.flows["bytes"][:10] == made.flows["bytes"]


def test_a_file_of_another_schema_is_refused_by_name(url, tmp_path):
    weir.sweep(SWEEP, store=url)
    (file,) = tmp_path.glob("results/*.parquet")
    table = pyarrow.parquet.read_table(file)
    packed = base64.b64decode(pyarrow.parquet.read_metadata(file).metadata[b"weir"])
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd") as text:
        old = text.read().replace(b'"schema":', b'"schema":9', 1)
    old = base64.b64encode(pyarrow.compress(old, "zstd", asbytes=True))
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"weir": old}), file)
    with pytest.raises(weir.RunError, match=f"{file.name}.*schema"):
        weir.sweep(SWEEP, store=url)
    for damaged in [b"damaged", b"x", packed[:-9], b"\xff", old[: len(old) // 8 * 4]]:
        pyarrow.parquet.write_table(table.replace_schema_metadata({b"weir": damaged}), file)
        with pytest.raises(weir.RunError, match=file.name):
            weir.sweep(SWEEP, store=url)
    file.write_bytes(b"PAR1")
    with pytest.raises(weir.RunError, match=file.name):
        weir.sweep(SWEEP, store=url)
    pyarrow.parquet.write_table(table.replace_schema_metadata({}), file)
    with pytest.raises(weir.RunError, match="is no result of Weir: remove it"):
        weir.sweep(SWEEP, store=url)


def test_a_store_that_cannot_be_is_known_before_any_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(weir.RunError, match="file/results"):
        weir.sweep(SWEEP, store=f"file://{tmp_path}/file/results")
    for wrong in ["nowhere://bucket/results", "zip://x", "://x"]:
        with pytest.raises(weir.RunError, match=wrong):
            weir.sweep(SWEEP, store=wrong)
    with pytest.raises(weir.ExperimentError, match="duratio"):
        weir.sweep({**SWEEP, "duratio": "1s"}, store=f"file://{tmp_path}/results")


def test_a_run_that_fails_stops_no_other(client):
    @weir.congestion_control("spread-broken", version="1")
    class Broken(weir.CongestionControl):
        def on_ack(self, window, ack):
            raise KeyError("no window")

    # The workers do not have it: their error is about the name.
    with pytest.raises(weir.ExperimentError, match="spread-broken"):
        weir.sweep({**SWEEP, "flow": [{"id": "a", "cc": "spread-broken"}]}, client=client)
    runs = weir.sweep(SWEEP, {"flow.a.cc": ["spread-broken", "reno"]}, store="memory://spread")
    assert [run.error is None for run in runs] == [False, True]
    assert "KeyError" in runs[0].error


COUNTED = """
import sys, weir

@weir.congestion_control("spread-counted", version="1")
class Counted(weir.CongestionControl):
    def __init__(self, seed):
        super().__init__(seed)
        with open(sys.argv[2], "a") as made:
            made.write("x")

    def on_ack(self, window, ack):
        window.cwnd = 20 * window.mss

    def on_congestion(self, window, now_ns, in_flight, reason):
        window.ssthresh = window.cwnd

sweep = {{**{sweep!r}, "flow": [{{"id": "a", "cc": "spread-counted"}}]}}
runs = weir.sweep(sweep, {rates!r}, seeds=4, store=sys.argv[1])
print(len(runs), runs.ok)
"""


def test_two_sweeps_at_one_store_make_no_run_twice(url, tmp_path):
    code = COUNTED.format(sweep={**SWEEP, "duration": "4s"}, rates=RATES)
    command = [sys.executable, "-c", code, url, str(tmp_path / "made")]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [racer.communicate(timeout=200)[0] for racer in racers] == ["40 True\n"] * 3
    # Both ends of the flow have a control.
    assert (tmp_path / "made").read_text() == "x" * 80
    assert len(list(tmp_path.glob("results/*.parquet"))) == 40
    assert not list(tmp_path.glob("results/.*"))


def test_a_claim_passes_on_when_its_holder_is_lost(monkeypatch):
    """Signs of life every 0.05 s; one that stays away for 0.3 s is of a lost holder."""
    from weir import _claims

    monkeypatch.setattr(_claims, "BEAT", 0.05)
    monkeypatch.setattr(_claims, "LOST", 0.3)
    files = fsspec.filesystem("memory")
    files.makedirs("/claims", exist_ok=True)
    mine, other = _claims.Claims(files), _claims.Claims(files)
    held = mine.take("/claims/.run", "mine")
    with held:
        ends = time.monotonic() + 0.8
        while time.monotonic() < ends:
            assert other.take("/claims/.run", "other") is None
            time.sleep(0.02)
    # Given up: the next one takes it. Without signs of life it is lost, and one of two gets it.
    lost = other.take("/claims/.run", "other")
    assert lost is not None
    third = _claims.Claims(files)
    assert mine.take("/claims/.run", "mine") is None and third.take("/claims/.run", "third") is None
    time.sleep(0.4)
    with mine.take("/claims/.run", "mine"):
        assert third.take("/claims/.run", "third") is None
    # A claim that is not yet written is not lost.
    files.pipe_file("/claims/.new.0.claim", b"")
    assert mine.take("/claims/.new", "mine") is None
    # A worker of the same sweep that its scheduler has given up is not waited for.
    assert other.take("/claims/.run", "other") is not None
    assert other.take("/claims/.run", "other") is not None


def test_a_lost_store_loses_no_finished_run(url, tmp_path, monkeypatch):
    from weir import _store

    whole, kept = _store.Store.put, []

    def put(self, key, run):
        if len(kept) == 6:
            self._url = "file:///lost"
            raise weir.RunError("file:///lost: connection lost")
        whole(self, key, run)
        kept.append(key)

    monkeypatch.setattr(_store.Store, "put", put)
    with pytest.raises(weir.RunError, match="connection lost") as lost:
        weir.sweep(SWEEP, RATES, store=url, jobs=1)
    # The six that were kept, and the one that was made and could not be.
    assert len(lost.value.results) == 7 and lost.value.results.ok
    monkeypatch.undo()
    times = {file: file.stat().st_mtime_ns for file in tmp_path.glob("results/*.parquet")}
    assert len(times) == 6
    assert len(weir.sweep(SWEEP, RATES, store=url)) == 10
    assert all(file.stat().st_mtime_ns == time for file, time in times.items())


FULL = """
import pathlib, subprocess, sys, weir

folder, store = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", folder], check=True)
sweep, rates = {sweep!r}, {rates!r}
try:
    weir.sweep(sweep, rates, seeds=5, store=store, jobs=1)
    print("it is not full")
except weir.RunError as error:
    print("No space left" in str(error))
whole = {{file: file.stat().st_mtime_ns for file in pathlib.Path(folder).rglob("*") if file.suffix in (".json", ".parquet")}}
subprocess.run(["mount", "-o", "remount,size=40m", folder], check=True)
print(0 < len(whole) < 50, len(weir.sweep(sweep, rates, seeds=5, store=store)))
print(all(file.stat().st_mtime_ns == time for file, time in whole.items()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of a few kilobytes needs root")
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_full_disk_loses_no_kept_run(scheme, tmp_path):
    code = FULL.format(sweep=SWEEP, rates=RATES)
    command = ["unshare", "-m", sys.executable, "-c", code, str(tmp_path), f"{scheme}{tmp_path}/results"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.split() == ["True", "True", "50", "True"], done.stderr
