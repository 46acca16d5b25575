"""The plot of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from ernie_gram.plot import main, plot_runs
from ernie_gram.run.run_log import RunLog
from tests.support.commands import assert_one_line_error, call

BEGINNINGS = {"png": b"\x89PNG", "PDF": b"%PDF", "svg": b"<?xml"}


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that a test saves."""
    figures: list[Figure] = []
    usual = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **b: figures.append(figure) or usual(figure, *a, **b))
    return figures


def test_a_resumed_run_is_plotted_in_the_format_of_the_ending(tmp_path: Path, saved: list[Figure]) -> None:
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20)
    for step in (0, 10, 20):
        perplexities = {"perplexity": 100.0 - step, "ngram_perplexity": 200.0 - step, "frequency_perplexity": 50.0}
        log.record("eval", step, perplexities)
        log.record("train", step, {"loss": 5.0 - step / 10})
    log.close()
    RunLog(tmp_path, True, visualdl=False, start=10, max_steps=20).close()
    for ending, beginning in BEGINNINGS.items():
        plot_runs([tmp_path], tmp_path / f"curve.{ending}")
        assert (tmp_path / f"curve.{ending}").read_bytes().startswith(beginning)
    losses, perplexity = saved[0].axes
    assert [line.get_xydata().tolist() for line in losses.lines] == [[[0, 5], [10, 4]]]
    assert {line.get_label(): line.get_xydata().tolist() for line in perplexity.lines} == {
        f"{tmp_path.name}: units": [[0, 100], [10, 90]],
        f"{tmp_path.name}: n-grams": [[0, 200], [10, 190]],
        f"{tmp_path.name}: unit frequencies": [[0, 50], [10, 50]],
    }


def test_a_file_of_the_run_is_never_replaced_and_another_on_request(tmp_path: Path) -> None:
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20)
    log.record("train", 10, {"loss": 1.0})
    log.close()
    own, other = tmp_path / "curves.png", tmp_path / "other.png"
    other.touch()
    command = [str(tmp_path), "--output"]
    assert_one_line_error(call(main, *command, str(own), "--overwrite"), f"--output: {own} belongs to the run ")
    assert_one_line_error(call(main, *command, str(other)), f"{other}: ")
    missing = tmp_path / "missing" / "a.png"
    assert_one_line_error(call(main, *command, str(missing)), f"{missing}: ")
    assert_one_line_error(call(main, *command, str(tmp_path / "curve.jpg")), "")
    call(main, *command, str(other), "--overwrite").ok()
    assert other.stat().st_size


def logged(folder: Path, steps: range) -> Path:
    """Write the log of a run with a record of training and one of evaluation for each step; return its folder."""
    folder.mkdir(parents=True)
    log = RunLog(folder, True, visualdl=False, start=0, max_steps=steps.stop)
    for step in steps:
        log.record("train", step, {"loss": 1.0})
        log.record("eval", step, {"score": 0.5})
    log.close()
    return folder


def test_runs_of_the_same_name_are_told_apart_by_their_folders(tmp_path: Path, saved: list[Figure]) -> None:
    a, b, other = (logged(tmp_path / name, range(1, 3)) for name in ("a/model", "b/model", "other"))
    plot_runs([a, b, other, a], tmp_path / "curve.png")
    for axes in saved[0].axes:
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [str(a), str(b), "other"]


def test_chinese_names_have_a_font_if_there_is_one_and_few_points_have_markers(
    tmp_path: Path, saved: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = next(font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans")
    fonts = [replace(usual, name=name) for name in ("DejaVu Sans", "Noto Sans CJK SC", "Cantarell")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    for steps, marker in ((range(6, 7), "o"), (range(1, 90), "")):
        plot_runs([logged(tmp_path / f"run{len(steps)}", steps)], tmp_path / "curve.png")
        assert saved[-1].axes[0].lines[0].get_marker() == marker
    assert {tuple(text.get_fontfamily()) for text in saved[0].findobj(Text)} == {("DejaVu Sans", "Noto Sans CJK SC")}
