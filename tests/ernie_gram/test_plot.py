"""The plot of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ernie_gram.plot import plot_runs
from ernie_gram.run.run_log import RunLog
from reader.errors import InputError
from tests.support.commands import python

BEGINNINGS = {"png": b"\x89PNG", "PDF": b"%PDF", "svg": b"<?xml"}


def test_a_resumed_run_is_plotted_in_the_format_of_the_ending(tmp_path: Path) -> None:
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20)
    for step in (0, 10, 20):
        log.record("eval", step, {"perplexity": 100.0 - step, "frequency_perplexity": 50.0})
        log.record("train", step, {"loss": 5.0 - step / 10})
    log.close()
    RunLog(tmp_path, True, visualdl=False, start=10, max_steps=20).close()
    for ending, beginning in BEGINNINGS.items():
        plot_runs([tmp_path], tmp_path / f"curve.{ending}")
        assert (tmp_path / f"curve.{ending}").read_bytes().startswith(beginning)


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the folder of a run"):
        plot_runs([tmp_path / "nowhere"], tmp_path / "other.png")


@pytest.mark.parametrize("name", ["curve.jpg", "curve", "missing/curve.png"])
def test_another_format_or_folder_is_refused_before_drawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("ernie_gram.plot.new_figure", lambda _: pytest.fail("draws"))
    with pytest.raises(InputError, match=r"must end in \.png, \.pdf, \.svg|there is no folder"):
        plot_runs([tmp_path], tmp_path / name)


def test_an_unwritable_home_directory_gives_one_line_and_a_plot(tmp_path: Path) -> None:
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20)
    log.record("train", 10, {"loss": 1.0})
    log.close()
    home = {"HOME": "/dev/null/home", "MPLCONFIGDIR": "", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    done = python("-m", "ernie_gram.plot", str(tmp_path), "--to", str(tmp_path / "curve.png"), **home)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line == "warning: Matplotlib's cache folder cannot be written; it uses a temporary one"
    assert (tmp_path / "curve.png").is_file()
