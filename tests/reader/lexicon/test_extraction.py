"""Counting in segments, by several processes, with thresholds, and after a stop: always what plain counting gives."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from reader.errors import InputError
from reader.lexicon import local_engine as counting_local
from reader.lexicon.counting import dealt, key_table, longer_heads, needed_count, ngram_keys, pack_sorted, sum_sorted
from reader.lexicon.counting_stages import Split
from reader.lexicon.extraction import Counted, CountingJob, Settings, guess
from reader.lexicon.local_engine import LocalEngine
from reader.text import digest as text_digest
from reader.text import file_ranges as text_units
from reader.text import map_segments as segment_work
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles
from tests.reader.lexicon.test_lexicon_file import entries_of, reference_lexicon
from tests.support.commands import digest_of, kill_when, python

TOP = {2: 300, 3: 200}


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_work, "MIN_SEGMENT_BYTES", 1 << 12)
    monkeypatch.setattr(segment_work, "MAX_SEGMENT_BYTES", 1 << 12)
    for module in (text_digest, text_units):
        monkeypatch.setattr(module, "BLOCK_BYTES", 1 << 12)


def count(
    path: Path,
    folder: Path,
    top: dict[int, int],
    *,
    memory: int = 2 << 30,
    workers: int = 1,
    thresholds: dict[int, int] | None = None,
    han: str = "char",
) -> tuple[Counted, list[str], int]:
    """What was counted, what was said, and in how many segments."""
    folder.mkdir(exist_ok=True)
    said: list[str] = []
    settings = Settings(True, han, top, thresholds or {})
    engine = LocalEngine(TextFiles([path]), Resources(memory, workers), folder)
    counted = CountingJob(engine, settings, said.append).run()
    return counted, said, len(engine.segments)


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("workers", [1, 2])
def test_segments_and_workers_change_nothing(built: Path, tmp_path: Path, workers: int) -> None:
    top = {2: 300, 3: 200, 5: 20}
    counted, _, segments = count(built / "train.txt", tmp_path / "work", top, workers=workers)
    assert segments > 10
    assert entries_of(counted.best) == reference_lexicon(built / "train.txt", top)


@pytest.mark.usefixtures("small_segments")
def test_little_memory_merges_in_many_ranges(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Resources, "max_merge_entries", 1000)
    ranges: list[int] = []
    whole = LocalEngine._ranges

    def watched(self: LocalEngine, parts: list[Path], count_bits: int) -> list[tuple[int, int]]:
        found = whole(self, parts, count_bits)
        ranges.append(len(found))
        # An n-gram's entries of all segments are in one range, whatever their counts.
        assert [start % (1 << count_bits) for start, _ in found] == [0] * len(found)
        return found

    monkeypatch.setattr(LocalEngine, "_ranges", watched)
    counted, _, _ = count(built / "train.txt", tmp_path / "work", TOP)
    assert min(ranges) > 5
    assert entries_of(counted.best) == reference_lexicon(built / "train.txt", TOP)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--memory", "100MB", "too little; at least"),
        ("--memory", "2 apples", "expected a size such as"),
        ("--workers", "0", "expected a whole number from 1 on"),
        ("--top", "2:5,6:5", "orders go from 1 to 5"),
        ("--top", "2", "expected ORDER:NUMBER"),
        ("--segmenter", "none", "invalid choice"),
        ("--master", "local[2]", "--master: is for --engine spark"),
    ],
)
def test_bad_options_are_named(built: Path, tmp_path: Path, option: str, value: str, message: str) -> None:
    done = python(*arguments(built, tmp_path / "lexicon.tsv"), option, value)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert said.startswith("error: ")
    assert option in said
    assert message in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("thresholds", [{2: 50}, {3: 50}, {2: 10**6, 3: 10**6}])
def test_a_threshold_too_high_is_found_out(built: Path, tmp_path: Path, thresholds: dict[int, int]) -> None:
    counted, said, _ = count(built / "train.txt", tmp_path / "work", TOP, thresholds=thresholds)
    assert entries_of(counted.best) == reference_lexicon(built / "train.txt", TOP)
    for order, threshold in thresholds.items():
        assert any(f"order {order}: n-grams that occur fewer than {threshold:,} times" in line for line in said)


def test_the_bound_holds_for_every_ngram(built: Path, tmp_path: Path) -> None:
    counted, _, _ = count(built / "train.txt", tmp_path / "work", {2: 10**6})
    found = entries_of(counted.best)
    assert all(needed_count(t, counted.totals[2]) <= count for _, count, t in found)
    # And it is tight where the words never occur apart from each other and are rare.
    tightest = max(needed_count(t, counted.totals[2]) / count for _, count, t in found if count > 5)
    assert tightest > 0.9


def test_a_guess_is_below_what_is_needed() -> None:
    # Scores whose squares follow a power law, as in a text of which the sample is a hundredth.
    squares = 1e6 / np.arange(1, 100_000) ** 0.9
    for k in (10, 1000, 50_000):
        for share in (1.0, 0.01):
            needed = squares[k - 1]
            assert 0.2 * needed < guess(np.sqrt(squares * share), k, share) < needed


def test_words_of_several_han_characters(tmp_path: Path) -> None:
    path = tmp_path / "zh.txt"
    path.write_text("中国人民 喜欢 北京\n中国 北京 abc 大\n中国 abc 大 大\n" * 3)
    counted, _, _ = count(path, tmp_path / "work", {1: 2, 2: 1}, han="space")
    assert [entry[:2] for entry in entries_of(counted.best)] == [(("中国",), 6), (("北京",), 6), (("abc", "大"), 6)]
    path.write_text("\n")
    with pytest.raises(InputError, match="no text"):
        count(path, tmp_path / "other", {2: 1})


def test_kernels_against_plain_counting() -> None:
    random = np.random.default_rng(0)
    words = random.integers(-1, 6, 3000).astype(np.int32)
    expected = Counter(tuple(words[i : i + 3].tolist()) for i in range(2998) if (words[i : i + 3] >= 0).all())
    # Two bits for counts: entries overflow and are taken together again.
    keys = ngram_keys(words, words, 2, 3)
    keys.sort()
    pairs, pair_counts = sum_sorted(pack_sorted(keys, 2), 2, 1)
    pairs, pair_counts = pairs[pair_counts >= 60], pair_counts[pair_counts >= 60]
    heads = longer_heads(words, words, 2, 3, key_table(pairs))
    keys = ngram_keys(heads, words, 3, 3)
    keys.sort()
    triples, counts = sum_sorted(pack_sorted(keys, 2), 2, 3)
    found = {(*divmod(int(pairs[int(key) >> 3]), 8), int(key) & 7): n for key, n in zip(triples, counts, strict=True)}
    known = {divmod(int(pair), 8) for pair in pairs}
    assert 0 < len(known) < 36
    assert found == {w: n for w, n in expected.items() if n >= 3 and w[:2] in known and w[1:] in known}


def test_dealt_entries_of_a_key_are_in_one_share_and_sorted() -> None:
    keys = np.sort(np.random.default_rng(0).integers(0, 500, 5000).astype(np.uint64))
    packed = pack_sorted(keys, 2)
    entries, bounds = dealt(packed, 2, 7)
    shares = [entries[start:end] >> np.uint64(2) for start, end in pairwise(bounds)]
    assert all(len(share) > 0 and (share[:-1] <= share[1:]).all() for share in shares)
    assert sum(len(np.unique(share)) for share in shares) == len(np.unique(keys))
    assert np.array_equal(np.sort(entries), np.sort(packed))


def arguments(built: Path, output: Path) -> list[str]:
    text = ["--input", str(output.with_name("text.txt")), "--vocab", str(built / "vocab.txt")]
    return ["-m", "reader.build", "lexicon", *text, "--workers", "2", "--top", "2:300,3:200", "--output", str(output)]


@pytest.mark.parametrize("stage", ["split/1", "order_2_of_*/0", "order_3_of_*/0"])
def test_a_killed_count_goes_on(built: Path, tmp_path: Path, stage: str) -> None:
    (tmp_path / "text.txt").write_bytes((built / "train.txt").read_bytes() * 12)
    output = tmp_path / "lexicon.tsv"
    work = tmp_path / ".lexicon.tsv.work"
    kill_when(arguments(built, output), lambda: list(work.glob(stage)))
    assert not output.exists()
    assert list(work.glob(stage))
    again = python(*arguments(built, output))
    assert again.returncode == 0, again.stderr
    assert not work.exists()
    undisturbed = tmp_path / "other.tsv"
    whole = python(*arguments(built, undisturbed))
    assert whole.returncode == 0, whole.stderr
    for suffix in ("", ".json"):
        assert Path(f"{output}{suffix}").read_bytes() == Path(f"{undisturbed}{suffix}").read_bytes()


@pytest.mark.usefixtures("small_segments")
def test_what_is_finished_is_not_done_again(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, _ = count(built / "train.txt", tmp_path / "work", TOP)

    def refuse(*_: object) -> None:
        raise AssertionError("done already")

    monkeypatch.setattr(Split, "__call__", refuse)
    monkeypatch.setattr(counting_local, "save_arrays", refuse)
    again, _, _ = count(built / "train.txt", tmp_path / "work", TOP)
    assert entries_of(again.best) == entries_of(first.best)


def test_a_job_goes_on_with_other_memory_and_workers(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, work = built / "train.txt", tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(Resources, "segment_bytes", lambda self, text: 1 << 14)
    monkeypatch.setattr(text_units, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(text_digest, "BLOCK_BYTES", 1 << 12)
    found = []
    for entries in (1 << 30, 1 << 8):
        monkeypatch.setattr(Resources, "max_merge_entries", entries)
        counted, _, segments = count(path, work, TOP)
        assert segments > 2
        found.append(entries_of(counted.best))
    # The second time everything was there, counted with words in one share; it reads them in many.
    assert found[0] == found[1] == reference_lexicon(path, TOP)


@pytest.mark.parametrize("workers", [1, 2])
def test_packed_and_plain_files_have_the_digest_of_the_text(built: Path, tmp_path: Path, workers: int) -> None:
    content = (built / "train.txt").read_bytes()
    (tmp_path / "a.txt").write_bytes(content * 12)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(content))
    (tmp_path / "c.jsonl").write_text('{"text": "some words"}\n')
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(content[:1000]))
    paths = sorted(tmp_path.iterdir())
    text = TextFiles(paths)
    assert all(not segment.is_blank for segment in text.segments_unchecked(1 << 20))
    (tmp_path / "work").mkdir()
    engine = LocalEngine(TextFiles(paths), Resources(2 << 30, workers), tmp_path / "work")
    totals, digest = engine.split(Split(True, "char"))
    assert digest == digest_of(text)
    assert totals[0] > 12 * 10_000
