"""The warning that a lexicon is too large for its text; the share of [UNK]: the same everywhere."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from reader.build import main
from reader.corpus import memmap
from reader.corpus.memmap import Corpus, large_lexicon_warning
from reader.tokenization.vocabulary import unknown_share, unknown_warning
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.commands import build, call


def corpus_of(built: Path, text: str, output: Path) -> str:
    """Build a corpus of a text of the fixture `built`; return what is printed on standard error."""
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    done = call(main, "corpus", "--input", str(built / text), *made_with, "--output", str(output))
    assert done.returncode == 0
    return done.stderr


def test_a_lexicon_too_large_for_its_text_is_noted(
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
    monkeypatch.setattr(memmap, "MIN_MEDIAN_OCCURRENCES", median)
    assert corpus_of(built, "train.txt", tmp_path / "again") == ""


def test_a_corpus_in_which_no_ngram_of_its_lexicon_occurs_is_warned_of(built: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("x y z\n")
    line = corpus_of(built, str(tmp_path / "other.txt"), tmp_path / "corpus")
    assert f"warning: {tmp_path / 'corpus'}: no n-gram of the lexicon occurs in this text; is it in another" in line
    text = ["--input", str(tmp_path / "other.txt"), "--vocab", str(built / "vocab.txt")]
    build("corpus", *text, "--output", str(tmp_path / "tokens"))
    assert large_lexicon_warning(Corpus(tmp_path / "tokens")) is None


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Of the words, "b" is [UNK]: 2 of the 8 tokens. In the second file, 6 of 9 are.
TEXTS = {"a.txt": "a b a a b a\na a\n", "b.txt": "b a a b b b b\n\na b\n"}
SHARES = {"a.txt": "25.00%", "b.txt": "66.67%", "*.txt": "47.06%"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "text" / name).write_text(text)
    (tmp_path / "vocab").write_text("\n".join([*SPECIAL, "a", "c"]))
    return tmp_path


def shares(text: str) -> list[str]:
    """Return the shares of [UNK] that a command has printed on one of its streams."""
    return [share for line in text.splitlines() if "[UNK]" in line for share in re.findall(r"\d+\.\d\d%", line)]


def test_a_corpus_has_the_same_share_with_and_without_a_lexicon_and_is_warned_of(folder: Path) -> None:
    vocab, lexicon = ["--vocab", str(folder / "vocab")], str(folder / "lexicon")
    for name, share in SHARES.items():
        text = ["--input", str(folder / "text" / name)]
        build("lexicon", *text, *vocab, "--top", "2:4", "--output", lexicon, "--overwrite")
        for more in (["--lexicon", lexicon], []):
            shutil.rmtree(folder / "corpus", ignore_errors=True)
            done = call(main, "corpus", *text, *vocab, *more, "--output", str(folder / "corpus"))
            assert (done.returncode, shares(done.stdout), shares(done.stderr)) == (0, [share], [share]), more
            assert f"warning: {folder / 'corpus'}: " in done.stderr
            assert "give a --vocab of the text's language" in done.stderr


def test_tokens_that_come_from_no_text_do_not_count_and_a_large_share_gives_a_warning() -> None:
    vocabulary = WordPieceVocabulary([*SPECIAL, "a", "##b"])
    counts = np.zeros(7, np.int64)
    assert unknown_share(counts, vocabulary) == 0
    counts[[vocabulary.pad, vocabulary.cls, vocabulary.sep, vocabulary.unk]] = 100, 10, 20, 1
    counts[5:] = 2, 1
    assert unknown_share(counts, vocabulary) == 1 / 4
    assert unknown_warning(0.03, "advice") is None
    assert str(unknown_warning(0.031, "advice")).endswith("advice")
