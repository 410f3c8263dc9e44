"""Tests of flent as experiments, and its data files."""

import gzip
import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import weir

ROOT = Path(__file__).resolve().parents[2]
PATH = {"wan": {"rate": "10Mbit", "delay": "20ms", "queue": "100p"}}


@pytest.fixture(scope="module")
def upload():
    return weir.sim(weir.flent.experiment("tcp_upload", PATH, length_s=20))


def test_rrul_is_the_file_of_the_page():
    with open(ROOT / "experiments/peers/rrul.toml", "rb") as file:
        written = tomllib.load(file)
    for key in ("title", "expect"):
        written.pop(key)
    assert weir.flent.experiment("rrul", PATH) == written


def test_every_test_runs_and_has_flent_s_names():
    for name, (up, down, _) in weir.flent.TESTS.items():
        data = weir.flent.of(weir.sim(weir.flent.experiment(name, PATH, length_s=6)))
        assert data.name == name and "Ping (ms) ICMP" in data.names
        for direction, count in (("upload", up), ("download", down)):
            of = [series for series in data.names if series.startswith(f"TCP {direction}")]
            assert len(of) == (count + 2 if count > 1 else count)
    rrul = weir.flent.of(weir.sim(weir.flent.experiment("rrul", PATH, length_s=6)))
    assert {"TCP upload BE", "TCP download EF", "TCP totals", "Ping (ms) avg"} <= set(rrul.names)
    with pytest.raises(ValueError, match="the tests are rrul, "):
        weir.flent.experiment("rrul_icmp", PATH)


def test_values_are_those_of_the_path(upload):
    data = weir.flent.of(upload)
    # 150 steps of 0.2 s; pings alone see 40 ms, and the load sends for 20 s from five seconds on.
    assert len(data.t_s) == 150 and data.t_s[25] == pytest.approx(5.0)
    assert 40.0 <= data.mean("Ping (ms) ICMP", 0, 5) < 40.5
    assert data["TCP upload"][24] is None and data["TCP upload"][50] is not None
    # A full frame has 1,448 bytes of 1,514; the queue of 100 packets adds at most 121 ms.
    assert 9.0 < data.mean("TCP upload") < 10 * 1448 / 1514
    assert 60.0 < data.mean("Ping (ms) ICMP", 10, 25) < 162.0
    with pytest.raises(KeyError, match="the series are"):
        data["TCP download"]


def test_files_are_read_as_they_were_written(upload, tmp_path):
    data = weir.flent.of(upload)
    for name in ["a.flent.gz", "a.flent"]:
        weir.flent.write(upload, tmp_path / name, title="twenty seconds")
        read = weir.flent.read(tmp_path / name)
        assert (read.name, read.t_s, read.names) == (data.name, data.t_s, data.names)
        assert all(read[series] == data[series] for series in data.names)
        assert read.metadata["TITLE"] == "twenty seconds"


def test_what_is_no_data_file_is_refused_by_name(upload, tmp_path):
    file = tmp_path / "a.flent.gz"
    weir.flent.write(upload, file)
    document = json.loads(gzip.decompress(file.read_bytes()))
    for wrong, reason in [
        (b"no JSON", "no data file of flent"),
        (b"[]", "no data file of flent"),
        (file.read_bytes()[:100], "no data file of flent"),
        (json.dumps({**document, "version": 5}).encode(), "version 5"),
        (json.dumps({**document, "x_values": [0.0]}).encode(), "other lengths"),
    ]:
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(weir.ExperimentError, match=f"wrong: .*{reason}"):
            weir.flent.read(tmp_path / "wrong")
    with pytest.raises(ValueError, match="the tests are"):
        weir.flent.of(weir.sim({"name": "other", "duration": "1s", "flow": [{"id": "a"}], "path": PATH}))


@pytest.mark.skipif(shutil.which("flent") is None, reason="flent is not installed")
def test_flent_reads_what_is_written(upload, tmp_path):
    weir.flent.write(upload, tmp_path / "a.flent.gz")
    command = ["flent", "-i", "a.flent.gz", "-f", "summary", "-o", "out.txt"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    summary = (tmp_path / "out.txt").read_text()
    assert "tcp_upload" in summary and "150" in summary
