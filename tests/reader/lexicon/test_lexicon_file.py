"""The lexicon equals a slow and simple reference; its files are checked when they are loaded."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from tokenizers.models import WordPiece

from reader.build import main
from reader.errors import InputError
from reader.lexicon import extraction
from reader.lexicon.extraction import t_statistic
from reader.lexicon.lexicon_file import Lexicon, NGrams, info_path
from reader.system.atomic_files import sha256_of
from reader.tokenization.basic_tokenizer import split_words
from reader.tokenization.vocabulary_file import load_vocabulary
from tests.support.commands import build, call

Scored = tuple[tuple[str, ...], int, float]


def reference_lexicon(path: Path, top: dict[int, int], min_count: int = 1) -> list[Scored]:
    """Return the n-grams of section 3.5 and Algorithm 1, computed literally in plain Python.

    N-grams that occur less than `min_count` times are left out before the best are chosen.
    """
    counts: dict[int, Counter[tuple[str, ...]]] = {order: Counter() for order in range(1, max(top) + 1)}
    for line in path.read_text(encoding="utf-8").split("\n"):
        words = split_words(line, lowercase=True)
        for order, counter in counts.items():
            for start in range(len(words) - order + 1):
                ngram = tuple(words[start : start + order])
                if all(any(c.isalnum() for c in word) for word in ngram):
                    counter[ngram] += 1
    totals = {order: sum(counter.values()) for order, counter in counts.items()}
    best: list[Scored] = []
    for order, k in top.items():
        scored: list[Scored] = []
        for ngram, count in counts[order].items():
            p = count / totals[order]
            independent = 1.0
            for word in ngram:
                independent = independent * (counts[1][(word,)] / totals[1])
            variance = p * (1.0 - p)
            scored.append((ngram, count, (p - independent) / math.sqrt(variance / totals[order])))
        scored = [entry for entry in scored if entry[1] >= min_count]
        best += sorted(scored, key=lambda entry: (-entry[2], entry[0]))[:k]
    return best


def entries_of(ngrams: NGrams) -> list[Scored]:
    words = (tuple(text.split(" ")) for text in ngrams.texts)
    return list(zip(words, ngrams.counts.tolist(), ngrams.t.tolist(), strict=True))


def begin_with(monkeypatch: pytest.MonkeyPatch, thresholds: dict[int, int]) -> None:
    """Let the counting of some orders begin with these thresholds."""
    first = extraction.first_threshold

    def wanted(order: int, *given: Any) -> int:
        return thresholds.get(order) or first(order, *given)

    monkeypatch.setattr(extraction, "first_threshold", wanted)


def test_entries_counts_and_scores_equal_the_reference(built: Path) -> None:
    lexicon = Lexicon.load(built / "lexicon.tsv")
    reference = reference_lexicon(built / "train.txt", {2: 400, 3: 200})
    model = WordPiece(load_vocabulary(built / "vocab.txt").ids, unk_token="[UNK]")
    short = [entry for entry in reference if sum(len(model.tokenize(word)) for word in entry[0]) <= 8]
    # Equal to the last bit, and in the same order.
    assert entries_of(lexicon.ngrams) == short
    assert lexicon.info.left_out == len(reference) - len(short) > 0


def test_t_is_students_t_up_to_the_degrees_of_freedom() -> None:
    """A one-sample t-test of the 0/1 indicators "this l-gram is w" against the mean p' gives t up to a known factor."""
    count, total, first, second, unigrams = 30, 1000, 50, 40, 1100
    ours = t_statistic(np.array([count]), total, np.array([[first, second]]), unigrams)[0]
    indicators = np.r_[np.ones(count), np.zeros(total - count)]
    scipys = ttest_1samp(indicators, first * second / unigrams**2).statistic
    assert ours == pytest.approx(scipys * math.sqrt(total / (total - 1)), rel=1e-12)


@pytest.mark.parametrize("min_count", [3, 12])
def test_rare_ngrams_are_left_out(built: Path, tmp_path: Path, min_count: int) -> None:
    path = tmp_path / "lexicon.tsv"
    text = ["--input", str(built / "train.txt"), "--vocab", str(built / "vocab.txt"), "--top", "2:200,3:100"]
    limits = ["--max_ngram_tokens", "1000", "--min_count", str(min_count)]
    build("lexicon", *text, *limits, "--output", str(path))
    lexicon = Lexicon.load(path)
    assert entries_of(lexicon.ngrams) == reference_lexicon(built / "train.txt", {2: 200, 3: 100}, min_count)
    assert lexicon.ngrams.counts.min() >= min_count
    assert lexicon.info.min_count == min_count


def test_loading_a_damaged_lexicon_fails(built: Path, tmp_path: Path) -> None:
    path = sealed(built, tmp_path, lambda lines: None)
    assert Lexicon.load(path).fingerprint == Lexicon.load(built / "lexicon.tsv").fingerprint

    def refused(match: str) -> None:
        with pytest.raises(InputError, match=match):
            Lexicon.load(path)

    path.write_bytes(path.read_bytes()[:-5])
    refused("its SHA-256 differs")
    info_path(path).unlink()
    refused("was not finished")
    path.unlink()
    refused("no such lexicon")


def sealed(built: Path, folder: Path, change: Callable[[list[str]], None]) -> Path:
    """Return a copy of the lexicon whose lines were changed, and which has the SHA-256 of the changed file."""
    path = folder / "lexicon.tsv"
    lines = (built / "lexicon.tsv").read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))
    info = json.loads(info_path(built / "lexicon.tsv").read_text())
    info_path(path).write_text(json.dumps(info | {"sha256": sha256_of(path)}))
    return path


def replaced(number: int, old: str, new: str) -> Callable[[list[str]], None]:
    """Return a function that replaces a part of a line, which is found by a regular expression."""

    def change(lines: list[str]) -> None:
        line = lines[number - 1]
        lines[number - 1] = re.sub(old, new, line, count=1)
        assert lines[number - 1] != line

    return change


@pytest.mark.parametrize(
    "change",
    [
        replaced(1, "ngram", "phrase"),
        lambda lines: lines.insert(6, lines[5]),
        lambda lines: lines.insert(6, lines.pop(2)),
        replaced(6, "^", "one two "),
        replaced(7, "[^\t]*$", "nan"),
        replaced(7, "[^\t]*$", "1e999x"),
        replaced(7, "\t[0-9]", "\t-1"),
        replaced(7, "\t[0-9]", f"\t{10**20}"),
        replaced(7, "\t[^\t]*$", "\t1\t1.0"),
        replaced(7, "$", "\t1.0"),
        replaced(0, " ", "  "),  # the last line, which may be of any length
        replaced(7, "^", " "),
        replaced(7, "^[^\t]*", ""),
    ],
)
def test_a_wrong_line_with_its_checksum_is_bad(
    built: Path, tmp_path: Path, change: Callable[[list[str]], None]
) -> None:
    path = sealed(built, tmp_path, change)
    with pytest.raises(InputError, match=rf"^{path}: damaged; build it again"):
        Lexicon.load(path)


@pytest.mark.parametrize("ngram", ["the", "\u9f98 the"])
def test_an_ngram_that_can_be_no_unit_is_refused(built: Path, tmp_path: Path, ngram: str) -> None:
    """One of a single token; one with a word that the vocabulary cannot spell, which is [UNK]."""
    number = 2 if ngram == "the" else 5
    path = sealed(built, tmp_path, replaced(number, "^[^\t]*", ngram))
    # Models with such n-grams, which earlier versions kept, are still read.
    assert Lexicon.load(path).find(ngram) == number - 2
    arguments = ["--vocab", built / "vocab.txt", "--input", built / "held_out.txt"]
    command = ["corpus", *arguments, "--lexicon", path, "--output", tmp_path / "corpus"]
    assert call(main, *map(str, command)).refused().startswith(f"error: {path}: line {number}: {ngram!r} ")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lexicon.tsv", "lexicon.tsv.json"]


@pytest.mark.parametrize("content", ["[]", '{"vocabulary": "x"}', '{"han": "jieba"}', "x", None])
def test_a_damaged_description_is_refused(built: Path, tmp_path: Path, content: str | None) -> None:
    path = sealed(built, tmp_path, lambda lines: None)
    unknown = json.dumps(json.loads(info_path(path).read_text()) | {"han": "other"})
    info_path(path).write_text(unknown if content is None else content)
    with pytest.raises(InputError, match=rf"^{info_path(path)}: "):
        Lexicon.load(path)
