"""The warning that a lexicon is too large for its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader import build_messages
from reader.build import main
from reader.build_messages import large_lexicon_warning
from reader.corpus.memmap import Corpus
from tests.support.commands import build, call


def corpus_of(built: Path, text: str, output: Path) -> str:
    """Build a corpus of a text of the fixture `built`; return what is printed on standard error."""
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    done = call(main, "corpus", "--input", str(built / text), *made_with, "--output", str(output))
    assert done.returncode == 0
    return done.stderr


def test_a_corpus_of_the_lexicons_own_text_is_warned_of(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus(built / "corpus")
    counts = sorted(corpus.unit_counts[corpus.info.num_tokens :].tolist())
    median = (counts[(len(counts) - 1) // 2] + counts[len(counts) // 2]) / 2
    assert median < 130
    (line,) = corpus_of(built, "train.txt", tmp_path / "corpus").splitlines()
    assert line.startswith(f"warning: {tmp_path / 'corpus'}: the lexicon is too large for this text: half of ")
    assert f" occur at most {median:,.0f} times" in line
    assert corpus_of(built, "held_out.txt", tmp_path / "held_out") == ""
    monkeypatch.setattr(build_messages, "MIN_MEDIAN_OCCURRENCES", median)
    assert corpus_of(built, "train.txt", tmp_path / "again") == ""


def test_a_corpus_in_which_no_ngram_occurs_is_warned_of(built: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("x y z\n")
    line = corpus_of(built, str(tmp_path / "other.txt"), tmp_path / "corpus")
    assert f"warning: {tmp_path / 'corpus'}: no n-gram of the lexicon occurs in this text; is it in another" in line


def test_a_corpus_without_ngrams_is_not_warned_of(built: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    build(
        "corpus", "--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--output", str(tokens)
    )
    assert large_lexicon_warning(Corpus(tokens)) is None
