"""The plot of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from ernie_gram.plot import main, new_figure, plot_runs, write_figure
from ernie_gram.run.run_log import RunLog
from reader.errors import InputError
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


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the folder of a run"):
        plot_runs([tmp_path / "nowhere"], tmp_path / "other.png")


@pytest.mark.parametrize("name", ["curve.jpg", "curve"])
def test_another_format_is_refused_before_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("ernie_gram.plot.new_figure", lambda _: pytest.fail("draws"))
    with pytest.raises(InputError, match=r"must end in \.png, \.pdf, \.svg"):
        plot_runs([tmp_path], tmp_path / name)


def test_a_file_of_the_run_is_never_replaced_and_another_on_request(tmp_path: Path) -> None:
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20)
    log.record("train", 10, {"loss": 1.0})
    log.close()
    own, other = tmp_path / "curves.png", tmp_path / "other.png"
    other.touch()
    command = [str(tmp_path), "--output"]
    assert_one_line_error(call(main, *command, str(own), "--overwrite"), f"--output: {own} belongs to the run ")
    assert_one_line_error(call(main, *command, str(other)), f"{other}: already exists; choose another --output or pass")
    missing = tmp_path / "missing" / "a.png"
    assert_one_line_error(call(main, *command, str(missing)), f"{missing}: there is no folder")
    assert call(main, *command, str(other), "--overwrite").returncode == 0
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


def test_the_current_folder_has_its_name(tmp_path: Path, saved: list[Figure], monkeypatch: pytest.MonkeyPatch) -> None:
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=1)
    log.record("train", 0, {"loss": 5.0})
    log.close()
    monkeypatch.chdir(tmp_path)
    plot_runs([Path()], Path("curve.png"))
    assert tmp_path.name in [line.get_label() for line in saved[0].axes[0].lines]


@pytest.mark.parametrize(("steps", "marker"), [(range(6, 7), "o"), (range(1, 4), "o"), (range(1, 90), "")])
def test_few_points_have_markers_and_all_ticks_are_whole_steps(
    tmp_path: Path, saved: list[Figure], steps: range, marker: str
) -> None:
    plot_runs([logged(tmp_path / "run", steps)], tmp_path / "curve.png")
    for axes in saved[0].axes:
        first, last = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if first <= tick <= last]
        assert ticks
        assert all(float(tick).is_integer() for tick in ticks)
    assert saved[0].axes[0].lines[0].get_marker() == marker


def test_the_command_prints_the_path(tmp_path: Path) -> None:
    done = call(main, str(logged(tmp_path / "run", range(1, 3))), "--output", str(tmp_path / "curve.svg"))
    assert done == (0, f"written  {tmp_path / 'curve.svg'}\n", "")


def test_chinese_names_have_a_font_if_there_is_one(
    tmp_path: Path, saved: list[Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = next(font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans")
    fonts = [replace(usual, name=name) for name in ("DejaVu Sans", "Noto Sans CJK SC", "Cantarell")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    plot_runs([logged(tmp_path / "run", range(1, 3))], tmp_path / "curve.png")
    assert {tuple(text.get_fontfamily()) for text in saved[0].findobj(Text)} == {("DejaVu Sans", "Noto Sans CJK SC")}


def test_letters_that_no_font_has_are_named_in_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    figure, _ = new_figure(1)
    figure.text(0.5, 0.5, "a\ue000\ue001\ue000")
    write_figure(figure, tmp_path / "a.png")
    shown = capsys.readouterr().err
    assert shown.startswith(f"warning: {tmp_path / 'a.png'}: no installed font has \ue000\ue001; install one")
    assert shown.count("\n") == 1
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
