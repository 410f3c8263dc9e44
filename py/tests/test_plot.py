"""Figures: what is in them, and the code that docs and README show."""

import os
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import weir

ROOT = Path(__file__).resolve().parents[2]
TWO = {
    "name": "two",
    "duration": "10s",
    "path": {"wan": {"rate": "10Mbit", "delay": "20ms", "queue": "1bdp"}},
    "flow": [{"id": "a", "cc": "cubic"}, {"id": "b", "cc": "reno", "start": "3s"}],
    "series": ["cwnd", "rtt", "queue"],
    "sample": "50ms",
}


@pytest.fixture(scope="module")
def result():
    return weir.sim(TWO)


@pytest.fixture(scope="module")
def runs():
    over = {"path.wan.delay": ["5ms", "20ms"], "flow.b.cc": ["reno", "bbr"]}
    return weir.sweep({**TWO, "duration": "5s"}, over, seeds=2)


def words(figure, width="column"):
    """Texts of an SVG, which must be well-formed."""
    root = ElementTree.fromstring(figure.svg(width))
    return [text.text.strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_series_have_their_flows_and_units(result):
    assert {"a", "b", "cwnd, packets", "time, s"} <= set(words(weir.plot.series(result, "cwnd_packets")))
    only = words(weir.plot.series(result, "queue_delay_us", ["wan.out"], title="A queue"))
    assert "A queue" in only and "queue delay, ms" in only and "wan.out" in only and "wan.back" not in only
    with pytest.raises(ValueError, match="no series has `cwnd`: there are .*cwnd_packets"):
        weir.plot.series(result, "cwnd")


def test_distributions_sweeps_fairness_and_queues(result, runs):
    assert {"share of time, %", "rtt, ms"} <= set(words(weir.plot.cdf(result, "rtt_us")))
    assert "share of flows, %" in words(weir.plot.cdf(runs, "goodput_bps"))
    swept = words(weir.plot.sweep(runs, over="path.wan.delay"))
    assert {"5ms", "20ms", "goodput, Mbit/s", "b, flow.b.cc = bbr"} <= set(swept)
    assert "wan out queue p99, ms" in words(weir.plot.sweep(runs, "path.wan.delay", "wan.out.queue_us.p99"))
    assert "Jain's index" in words(weir.plot.fairness(result))
    assert "fairness" in words(weir.plot.fairness(runs, over="flow.b.cc"))
    assert "flow.b.cc = bbr" in words(weir.plot.queue(runs, by="flow.b.cc"))
    for wrong in [
        lambda: weir.plot.fairness(runs),
        lambda: weir.plot.sweep(runs, over="path.wan.rate"),
        lambda: weir.plot.sweep(runs, over="path.wan.delay", what="speed"),
        lambda: weir.plot.queue(runs, "wan"),
        lambda: weir.plot.cdf(runs, "speed"),
    ]:
        with pytest.raises(ValueError):
            wrong()


def test_colours_differ_without_colour(result):
    """Of two lines, one is drawn through and one in dashes: pieces of the second colour are many."""
    svg = weir.plot.series(result, "cwnd_packets").svg("column")
    pieces = lambda colour: len(re.findall(f'<polyline[^>]*stroke="{colour}"', svg))
    assert pieces("#0072B2") == 2 and pieces("#D55E00") > 20


def test_files_are_as_wide_as_a_column(result, tmp_path):
    figure = weir.plot.series(result)
    figure.save(tmp_path / "a.svg")
    figure.save(tmp_path / "a.pdf", width="page")
    assert 'width="252.00pt"' in (tmp_path / "a.svg").read_text()
    assert b"/MediaBox [0 0 515.52 " in (tmp_path / "a.pdf").read_bytes()
    with pytest.raises(ValueError, match="figures are .svg or .pdf"):
        figure.save(tmp_path / "a.png")
    with pytest.raises(ValueError, match='"screen", "column" or "page"'):
        figure.svg("wide")
    with pytest.raises(FileNotFoundError):
        figure.save(tmp_path / "none" / "a.svg")


FULL = """
import pathlib, subprocess, sys, weir

folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", folder], check=True)
result = weir.sim({two!r}, duration="5s")
figure, file = weir.plot.series(result), pathlib.Path(folder, "a.svg")
figure.save(file)
before = file.read_bytes()
pathlib.Path(folder, "rest").write_bytes(bytes(88 * 1024 - len(before)))
try:
    figure.save(file)
    print("it is not full")
except OSError as error:
    print("No space left" in str(error))
print(file.read_bytes() == before, sorted(path.name for path in pathlib.Path(folder).iterdir()))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of a few kilobytes needs root")
def test_a_full_disk_leaves_the_figure_before(tmp_path):
    command = ["unshare", "-m", sys.executable, "-c", FULL.format(two=TWO), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.splitlines() == ["True", "True ['a.svg', 'rest']"], done.stderr


def test_a_link_is_followed(result, tmp_path):
    (tmp_path / "to.svg").symlink_to(tmp_path / "a.svg")
    (tmp_path / "a.svg").write_text("")
    weir.plot.series(result).save(tmp_path / "to.svg")
    assert (tmp_path / "to.svg").is_symlink() and (tmp_path / "a.svg").stat().st_size > 1000


def test_a_frame_is_one_line_from_matplotlib(result, tmp_path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    (line,) = plt.plot("t_s", "cwnd_packets", data=result.series["a.0"])
    assert list(line.get_xdata()) == result.series["a.0"]["t_s"]
    (bars,) = [plt.bar("id", "goodput_bps", data=result.flows)]
    assert len(bars) == 2


def blocks(page):
    """Python code of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "py/README.md"])
def test_the_first_figure_of_a_page_is_made(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "svg")
    code = blocks(page)[0]
    exec(compile(code, page, "exec"), {})
    for name in re.findall(r'(?:save|savefig)\("([^"]*)"\)', code):
        assert (tmp_path / name).stat().st_size > 1000


def test_from_nothing_to_a_figure_are_ten_lines():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = blocks("README.md")[0].strip()
    assert "pip install ./py" in readme and len([line for line in code.splitlines() if line.strip()]) <= 9
    assert ".save(" in code


def test_the_gallery_s_code_makes_its_figures(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gallery", str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "scripts" / "gallery"), run_name="__main__")
    for name in ["series", "cdf", "sweep", "fairness", "queue"]:
        made, shown = tmp_path / f"gallery/{name}.svg", ROOT / f"docs/gallery/{name}.svg"
        assert made.read_text() == shown.read_text(), f"make gallery: {name}"
    ElementTree.parse(tmp_path / "gallery/matplotlib.svg")
