"""The package, against arithmetic, the command and other readers of Arrow."""

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest
import weir

BULK = {
    "name": "bulk",
    "duration": "5s",
    "path": {"wan": {"rate": "10Mbit", "delay": "20ms"}},
    "flow": [{"id": "a"}, {"id": "b", "start": "1s"}],
    "series": ["cwnd"],
}


def changed(**values):
    return {**BULK, **values}


def test_a_link_is_filled():
    result = weir.sim(BULK)
    assert result.ok and result.world == "sim" and result.error is None
    link = dict(zip(result.links["name"], result.links["bytes"]))
    # At most 10 Mbit/s for five seconds, and nearly that.
    assert 0.9 * 6.25e6 < link["wan.out"] <= 6.25e6
    assert result.flows["id"] == ["a.0", "b.0"]
    assert sum(result.flows["bytes"]) < link["wan.out"]


def test_a_seed_gives_the_same_run():
    lossy = changed(path={"wan": {"rate": "10Mbit", "delay": "20ms", "loss": "1%"}})
    bytes_of = lambda seed: weir.sim(lossy, seed=seed).flows["bytes"]
    assert bytes_of(3) == bytes_of(3) != bytes_of(4)


def test_changes_are_by_path():
    slow = weir.sim(BULK, path__wan__rate="1Mbit")
    same = weir.sim(BULK, **{"path.wan.rate": "1Mbit"})
    assert slow.flows["bytes"] == same.flows["bytes"]
    assert sum(slow.flows["bytes"]) <= 0.625e6
    with pytest.raises(TypeError, match="path: a dict"):
        weir.sim(BULK, path={"wan": {}})


def test_every_reader_of_arrow_reads_tables():
    flows = weir.sim(BULK).flows
    want = flows["goodput_bps"]
    assert pyarrow.table(flows).column("goodput_bps").to_pylist() == want
    assert polars.from_arrow(pyarrow.table(flows))["goodput_bps"].to_list() == want
    assert polars.DataFrame(flows)["goodput_bps"].to_list() == want
    assert pandas.DataFrame(pyarrow.table(flows).to_pandas())["goodput_bps"].to_list() == want
    found = duckdb.sql("select sum(goodput_bps) from flows").fetchall()[0][0]
    assert found == pytest.approx(sum(want))
    # A stream is used up, a table is not.
    assert pyarrow.table(flows) == pyarrow.table(flows)
    assert len(flows) == 2 and "goodput_bps" in repr(flows)
    with pytest.raises(KeyError, match="goodput"):
        flows["goodput"]


def test_types_do_not_depend_on_values():
    empty = weir.sim(changed(flow=[{"id": "a", "start": "4.999s"}]), duration="5s").flows
    assert pyarrow.table(empty).schema == pyarrow.table(weir.sim(BULK).flows).schema


def test_series():
    series = weir.sim(BULK).series
    assert "a.0" in series and len(series["a.0"]) > 10
    times = series["a.0"]["t_s"]
    assert times == sorted(times) and times[-1] <= 5.0
    with pytest.raises(KeyError):
        series["c.0"]


def test_errors_are_those_of_the_command(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text('name = "w"\nduration = "5s"\nflow = [{ id = "a", congestion = "cubic" }]\n')
    with pytest.raises(weir.ExperimentError) as error:
        weir.sim(file)
    name, line, column, message, _ = error.value.faults[0]
    assert (name, line) == (str(file), 3) and column > 1 and "congestion" in message
    assert f"{file}:3:{column}: " in str(error.value)
    with pytest.raises(weir.ExperimentError, match="`flow.0.congestion`|congestion"):
        weir.sim(changed(flow=[{"id": "a", "congestion": "cubic"}]))
    with pytest.raises(FileNotFoundError):
        weir.sim(tmp_path / "none.toml")
    with pytest.raises(weir.ExperimentError, match="furlongs"):
        weir.sim(BULK, path__wan__rate="9 furlongs")


@pytest.mark.parametrize(
    "wrong, place",
    [
        ({"path": {"wan": {"rate": "10Mbit", "dely": "20ms"}}}, "unknown key `path.wan.dely`"),
        ({"flow": [{"id": "a"}, {"id": "b", "congestion": "cubic"}]}, "unknown key `flow.congestion`"),
        ({"gateway": {"class": [{"name": "x", "mtch": {"port": 1}}]}}, "unknown key `gateway.class.mtch`"),
        ({"path": {"wan": {1: "10Mbit"}}}, "Invalid mapping key '1'"),
        ({"flow": [{"id": "a"}, {"id": None}]}, "`flow.1.id` is None: leave the key out"),
        ({"series": {"cwnd"}}, "`series`: a set is no value of an experiment"),
        ({"duration": b"1s"}, "`duration`: a bytes is no value"),
        ({"seed": float("nan")}, "`seed`: expected a whole number, found the number nan"),
        ({"seed": 2**70}, "out of range"),
        ({"name": "half\ud800"}, "half a character"),
        ({"path": {"wan": {"rate": "10Mbit", "loss": float("inf")}}}, "not a probability"),
    ],
)
def test_values_that_cannot_be_are_named(wrong, place):
    with pytest.raises(weir.ExperimentError, match=place):
        weir.sim(changed(**wrong))


def test_a_dict_in_itself_is_refused():
    endless = dict(BULK)
    endless["path"] = endless
    with pytest.raises(weir.ExperimentError, match="nested too deeply"):
        weir.sim(endless)


def test_numbers_of_numpy_are_numbers():
    flow = [{"id": "a", "ecn": numpy.bool_(True)}]
    made = weir.sim(changed(series=numpy.array(["cwnd"]), seed=numpy.int64(3), flow=flow))
    assert made.seed == 3 and made.flows["id"] == ["a.0"]
    # A sixtieth has more digits than probabilities have.
    runs = weir.sweep(BULK, {"path.wan.loss": numpy.linspace(0, 0.1, 7), "seed": numpy.arange(2)}, duration="2s")
    assert len(runs) == 14 and runs[2].settings["path.wan.loss"] == 0.016666666667
    assert len(weir.sweep(BULK, {"seed": pandas.Series([1, 2])}, duration="2s")) == 2


def test_lists_and_counts_that_cannot_be(tmp_path):
    for values in ["10Mbit", 3, None, {"1Mbit": 1}]:
        with pytest.raises(TypeError, match="path.wan.rate: a sweep needs a list of values"):
            weir.sweep(BULK, {"path.wan.rate": values})
    with pytest.raises(TypeError, match="a dict of lists"):
        weir.sweep(BULK, [("seed", [1])])
    with pytest.raises(TypeError, match="is there twice"):
        weir.sweep(BULK, {"path.wan.rate": ["1Mbit"], "path__wan__rate": ["2Mbit"]})
    for wrong in [{"seeds": 0}, {"seeds": -1}, {"seeds": 10**10}, {"jobs": 0}, {"jobs": 2**70}, {"store": ""}]:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            weir.sweep(BULK, **wrong)
    for wrong in [{"seeds": 1.5}, {"seeds": "3"}, {"jobs": 1.5}, {"store": 3}]:
        with pytest.raises(TypeError):
            weir.sweep(BULK, **wrong)
    with pytest.raises(weir.ExperimentError, match="2000000 runs, more than 1000000: 20 combinations"):
        weir.sweep(BULK, {"seed": range(20)}, seeds=100_000)
    # A list without an end is not read to its end.
    with pytest.raises(weir.ExperimentError, match="more than 10000"):
        weir.sweep(BULK, {"seed": itertools.count(1)})


@pytest.mark.parametrize("folder", ["a b", "x/../../up", "ü#?*[x]", "~/home"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_folders_have_any_name(folder, scheme, tmp_path, monkeypatch):
    work = tmp_path / "work"
    (work / "x").mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "own"))
    place = folder if folder[0] == "~" and not scheme else f"{work}/{folder}"
    runs = weir.sweep(BULK, store=scheme + place, duration="2s")
    where = tmp_path / "own/home" if place[0] == "~" else work / folder
    assert runs.ok and len(list(where.iterdir())) == 1
    assert not (work / "~").exists() or scheme


def test_a_long_list_is_planned_in_little_memory():
    """10,000 runs have 2.5 kB each; with a text of 60 kB each it would be 600 MB."""
    code = (
        "import resource, weir\n"
        "from weir import _text\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        f"runs = weir._weir.Sweep(*_text.of({BULK!r}), _text.changes({{'sweep.seed': list(range(10_000))}}), 1)\n"
        "print(len(runs), peak() - before)\n"
    )
    runs, kilobytes = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert int(runs) == 10_000 and int(kilobytes) < 200_000


def test_results_are_pickled():
    made = weir.sweep(BULK, seeds=2, duration="2s")
    again = pickle.loads(pickle.dumps(made))
    assert again.flows["bytes"] == made.flows["bytes"] and again[1].data == made[1].data
    assert pickle.loads(pickle.dumps(made[0])).seed == made[0].seed


def test_a_failed_check_is_a_result():
    check = {"what": "flow.*.goodput_bps", "op": "at_least", "target": "1Gbit"}
    result = weir.sim(changed(expect=[check]))
    assert not result.ok and result.status == "failed" and not result.checks[0]["ok"]


def test_sweep():
    over = {"path.wan.rate": ["1Mbit", "2Mbit"], "flow.a.cc": ["reno", "cubic"]}
    runs = weir.sweep(BULK, over, seeds=2, jobs=2)
    assert len(runs) == 8 and runs.ok
    assert [run.settings["path.wan.rate"] for run in runs] == [1e6] * 4 + [2e6] * 4
    assert runs.flows["flow.a.cc"][:8] == ["reno"] * 4 + ["cubic"] * 4
    assert runs.flows["run"] == [n for n in range(1, 9) for _ in range(2)]
    assert sorted(set(runs.flows["seed"])) == [1, 2]
    assert len(runs[2:4]) == 2
    with pytest.raises(weir.ExperimentError, match="8 runs"):
        weir.sim(changed(sweep={"path": {"wan": {"rate": [f"{n}Mbit" for n in range(1, 9)]}}}))


def test_kept_runs_are_not_made_again(tmp_path):
    over = {"path.wan.rate": ["1Mbit", "2Mbit"]}
    first = weir.sweep(BULK, over, seeds=2, store=tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 4 and first.flows["bytes"] == weir.sweep(BULK, over, seeds=2).flows["bytes"]
    more = weir.sweep(BULK, {"path.wan.rate": ["1Mbit", "2Mbit", "3Mbit"]}, seeds=3, store=tmp_path)
    assert len(more) == 9 and len(list(tmp_path.iterdir())) == 9
    assert all(path.stat().st_mtime_ns == time for path, time in files.items())


def test_processes_share_a_store(tmp_path):
    code = (
        "import sys, weir\n"
        f"runs = weir.sweep({BULK!r}, {{'seed': list(range(1, 9))}}, store=sys.argv[1], jobs=1)\n"
        "print(len(runs), all(run.ok for run in runs))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    start = lambda: subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    workers = [start() for _ in range(3)]
    # A worker that is lost loses its own run only.
    time.sleep(0.7)
    workers[0].kill()
    assert [worker.communicate(timeout=120)[0] for worker in workers[1:]] == ["8 True\n"] * 2
    assert len([path for path in tmp_path.iterdir() if path.suffix == ".json"]) == 8


def test_results_are_read(tmp_path):
    file = tmp_path / "result.json"
    made = weir.sim(BULK)
    file.write_text(json.dumps(made.data))
    for path in [file, tmp_path]:
        assert weir.load(path).flows["bytes"] == made.flows["bytes"]
    for wrong, why in [
        (b'{"schema": 99}', "another version"),
        (b"", "no JSON"),
        (b"\xff", "no JSON: invalid utf-8"),
        (b"[" * 100_000, "no JSON: recursion limit"),
        (b'{"schema": 1}', "missing field"),
    ]:
        file.write_bytes(wrong)
        with pytest.raises(weir.ExperimentError, match=f"{file}: .*{why}"):
            weir.load(file)
    file.write_bytes("name = \"ü\"".encode("latin-1"))
    with pytest.raises(weir.ExperimentError, match="result.json: no text in UTF-8"):
        weir.sim(file)


def test_threads_run_beside_each_other():
    ticks = []
    runner = threading.Thread(target=lambda: weir.sim(BULK, duration="300s"))
    runner.start()
    while runner.is_alive():
        ticks.append(time.monotonic())
        time.sleep(0.001)
    # With the lock held there would be one tick, or two.
    assert len(ticks) > 10


def test_an_interruption_ends_a_run():
    code = (
        "import weir\n"
        "try:\n"
        f"    weir.sim({changed(duration='100000s')!r})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"


def test_without_the_program_the_lab_says_so(monkeypatch):
    monkeypatch.delenv("WEIR", raising=False)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(weir.RunError, match="no program `weir`"):
        weir.lab({key: value for key, value in BULK.items() if key != "series"})
