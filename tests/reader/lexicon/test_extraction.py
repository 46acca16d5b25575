"""Counting in segments, with several processes, and with thresholds gives the result of plain counting."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from reader.errors import InputError
from reader.lexicon import counting
from reader.lexicon.counting import LocalEngine
from reader.lexicon.extraction import Settings, count_best, needed_count
from reader.lexicon.lexicon_file import Lexicon, NGrams
from reader.system.atomic_files import save_arrays
from reader.text import map_segments
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles, text_of
from tests.reader.lexicon.test_lexicon_file import begin_with, entries_of, reference_lexicon
from tests.support.commands import ERNIE_GRAM, ROOT

TOP = {2: 300, 3: 200}


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_segments, "MIN_SEGMENT_BYTES", 1 << 12)
    monkeypatch.setattr(map_segments, "MAX_SEGMENT_BYTES", 1 << 12)


def count(
    path: Path, folder: Path, top: dict[int, int], workers: int = 1, segmenter: str = "char", min_count: int = 1
) -> tuple[NGrams, LocalEngine]:
    """Run a counting job; return its result and its engine."""
    folder.mkdir(exist_ok=True)
    settings = Settings(True, segmenter, top, min_count)
    engine = LocalEngine(TextFiles([path]), Resources(2 << 30, workers), folder)
    return count_best(engine, settings), engine


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize(("workers", "top"), [(1, {4: 50}), (2, {2: 10**6, 3: 3, 5: 20})])
def test_any_orders_are_counted_whatever_the_segments_and_workers(
    built: Path, tmp_path: Path, workers: int, top: dict[int, int]
) -> None:
    result, engine = count(built / "train.txt", tmp_path / "work", top, workers=workers)
    assert len(engine.segments) > 10
    assert entries_of(result) == reference_lexicon(built / "train.txt", top)


@pytest.mark.parametrize(("thresholds", "min_count"), [({2: 50}, 1), ({2: 10**6, 3: 10**6}, 1), ({2: 1, 3: 500}, 12)])
def test_a_threshold_that_is_too_high_is_lowered(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thresholds: dict[int, int], min_count: int
) -> None:
    begin_with(monkeypatch, thresholds)
    result, _ = count(built / "train.txt", tmp_path / "work", TOP, min_count=min_count)
    assert entries_of(result) == reference_lexicon(built / "train.txt", TOP, min_count)


def test_needed_count_is_a_lower_bound_for_every_ngram(built: Path, tmp_path: Path) -> None:
    result, engine = count(built / "train.txt", tmp_path / "work", {2: 10**6})
    found = entries_of(result)
    assert all(needed_count(t, engine.totals[1]) <= count for _, count, t in found)
    # The bound is tight for rare words that occur only together.
    tightest = max(needed_count(t, engine.totals[1]) / count for _, count, t in found if count > 5)
    assert tightest > 0.9


def test_order_1_keeps_words_of_several_han_characters(tmp_path: Path) -> None:
    path = tmp_path / "zh.txt"
    path.write_text("中国人民 喜欢 北京\n中国 北京 abc 大\n中国 abc 大 大\n" * 3)
    result, _ = count(path, tmp_path / "work", {1: 2, 2: 1}, segmenter="space")
    assert [entry[:2] for entry in entries_of(result)] == [(("中国",), 6), (("北京",), 6), (("abc", "大"), 6)]
    path.write_text("\n")
    with pytest.raises(InputError, match="no words"):
        count(path, tmp_path / "other", {2: 1})


@pytest.mark.usefixtures("small_segments")
def test_finished_segments_are_not_repeated(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count(built / "train.txt", tmp_path / "work", TOP, min_count=12)

    def refuse(*_: object) -> None:
        raise AssertionError("this work is already finished")

    monkeypatch.setattr(counting, "split_segment", refuse)
    # Other n-grams may be wanted of the same words.
    first, _ = count(built / "train.txt", tmp_path / "work", TOP)
    assert entries_of(first) == reference_lexicon(built / "train.txt", TOP)
    monkeypatch.setattr(counting, "save_arrays", refuse)
    again, _ = count(built / "train.txt", tmp_path / "work", TOP)
    assert entries_of(again) == entries_of(first)


def test_a_job_is_resumed_with_other_memory(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = built / "train.txt", tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(Resources, "segment_bytes", lambda self, text: 1 << 14)
    found = []
    for entries in (1 << 30, 1 << 8):
        monkeypatch.setattr(Resources, "max_merge_entries", entries)
        result, engine = count(path, work, TOP)
        assert len(engine.segments) > 2
        found.append(entries_of(result))
    # The second run finds all entries, and merges them in many tasks.
    assert found[0] == found[1] == reference_lexicon(path, TOP)


def test_ranges_of_entries_are_chosen_without_reading_all_of_them(tmp_path: Path) -> None:
    parts = [tmp_path / f"{i}" for i in range(16)]
    for i, part in enumerate(parts):
        save_arrays(part, entries=np.arange(i, i + (1 << 22), 4, np.uint64))
    (tmp_path / "text").write_text("text")
    engine = LocalEngine(TextFiles([tmp_path / "text"]), Resources(1 << 28, 2), tmp_path / "work")
    tracemalloc.start()
    ranges = engine._entry_ranges(parts, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(ranges) > 2
    # All four entries of a key are in the same range.
    assert all(start % 4 == 0 for start, _ in ranges)
    # The entries have 128 MB.
    assert peak < 8 << 20


# The path of a large text, and that of a vocab.txt.
TEXT, VOCAB = os.environ.get("LARGE_TEXT", ""), os.environ.get("LARGE_VOCAB", "")
MEMORY = "500MB"


def memory_of(group: int) -> int:
    """Return the memory of a process group in bytes; shared memory counts once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if os.getpgid(int(folder.name)) == group:
                sizes = re.findall(r"^Pss: +(\d+) kB", (folder / "smaps_rollup").read_text(), re.MULTILINE)
                total += 1024 * sum(map(int, sizes))
    return total


def peaks_of(arguments: list[str], folder: Path) -> tuple[int, int]:
    """Run a command of the reader; return its peak memory, and the peak size of `folder` on disk, in bytes."""
    process = subprocess.Popen([sys.executable, *ERNIE_GRAM, *arguments], cwd=ROOT, start_new_session=True)
    memory = disk = 0
    while process.poll() is None:
        memory = max(memory, memory_of(process.pid))
        shown = subprocess.run(["du", "-sb", folder], capture_output=True, text=True, check=False)
        disk = max(disk, int(shown.stdout.split()[0]))
        time.sleep(0.02)
    assert process.returncode == 0
    return memory, disk


@pytest.mark.needs("LARGE_TEXT", "LARGE_VOCAB")
def test_memory_limit_holds_for_texts_of_any_size(tmp_path: Path) -> None:
    found = []
    whole = b"".join(map(text_of, TextFiles([Path(TEXT)]).segments(1 << 24)))
    (tmp_path / "once.txt").write_bytes(whole)
    (tmp_path / "four.txt").write_bytes(whole * 4)
    for name in ("once", "four"):
        text, output = tmp_path / f"{name}.txt", tmp_path / name / "l.tsv"
        output.parent.mkdir()
        options = ["--vocab", VOCAB, "--output", str(output), "--memory", MEMORY, "--processes", "2"]
        memory, disk = peaks_of(["lexicon", "--input", str(text), *options], output.parent)
        print(f"{text.stat().st_size:,} bytes of text: memory {memory:,}, disk {disk:,}")
        assert memory <= 1.2 * 500e6
        assert disk <= 2.2 * text.stat().st_size
        found.append(Lexicon.load(output).ngrams)
    once, four = found
    assert once.texts == four.texts
    assert np.array_equal(4 * once.counts, four.counts)
    # Four copies of the text multiply t by sqrt(4) = 2, up to rounding.
    assert np.allclose(2 * once.t, four.t, rtol=1e-12)
