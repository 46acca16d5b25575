"""A list of phrases of one's own, or an edited lexicon, is a lexicon, and says that it was not counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reader.build import main
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon, info_path
from tests.support.commands import Done, build, call

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "heart", "attack", "after", "a", "-", "心", "肌"]
TEXT = "heart attack after a heart attack\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with text.txt and vocab.txt."""
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY))
    return tmp_path


def corpus_of(folder: Path, lexicon: Path, output: str = "corpus") -> Done:
    inputs = ["--input", folder / "text.txt", "--vocab", folder / "vocab.txt", "--lexicon", lexicon]
    return call(main, "corpus", *map(str, [*inputs, "--output", folder / output]))


def cut(folder: Path) -> list[str]:
    """Return the units of the corpus."""
    corpus = Corpus(folder / "corpus")
    return [corpus.names.text(int(unit)) for unit in corpus.units]


@pytest.mark.parametrize(
    ("content", "count", "t"),
    [
        (b"ngram\tcount\tt\nheart attack\t2\t1.0\n", 2, 1.0),
        (b"heart attack\t2\t1.5", 2, 1.5),
        (b"heart attack\t2\n", 2, 0.0),
        (b"heart attack", 0, 0.0),
        (b"\xef\xbb\xbfHeart  ATTACK \r\n\r\n", 0, 0.0),
        (b"heart attack\t7\n\nheart attack\t9\nHeart attack\n", 7, 0.0),
    ],
)
def test_a_list_of_phrases_is_a_lexicon(folder: Path, content: bytes, count: int, t: float) -> None:
    (folder / "phrases.tsv").write_bytes(content)
    done = corpus_of(folder, folder / "phrases.tsv").ok()
    assert "phrases.tsv: a list of your own, not counted here: 1 n-gram\n" in done.stderr
    assert cut(folder) == ["heart attack", "after", "a", "heart attack"]
    lexicon = Corpus(folder / "corpus").lexicon
    assert (lexicon.ngrams.counts.tolist(), lexicon.ngrams.t.tolist()) == ([count], [t])
    assert (lexicon.info.own, lexicon.info.text, lexicon.info.totals) == ("phrases.tsv", "", {})


def test_the_lexicon_of_a_corpus_and_its_list_are_the_same(folder: Path) -> None:
    """A held-out corpus may be made with either."""
    (folder / "phrases.tsv").write_text("a heart attack\nheart attack\t3\t2.5\nafter a\t4\t7.5\n")
    corpus_of(folder, folder / "phrases.tsv")
    assert Lexicon.load(folder / "corpus/lexicon.tsv").ngrams.texts == ["after a", "heart attack", "a heart attack"]
    for lexicon in ("phrases.tsv", "corpus/lexicon.tsv"):
        assert corpus_of(folder, folder / lexicon, "held_out").returncode == 0
        assert Corpus(folder / "held_out").info.lexicon == Corpus(folder / "corpus").info.lexicon
        shutil.rmtree(folder / "held_out")


def test_phrases_that_can_be_no_unit_are_left_out_with_a_note(folder: Path) -> None:
    (folder / "phrases.txt").write_text("heart\nheart-attack\nliver attack\nheart attack\n心肌\n")
    done = corpus_of(folder, folder / "phrases.txt")
    assert "3 n-grams; left out: 2 phrases " in done.stderr
    lexicon = Lexicon.load(folder / "corpus/lexicon.tsv")
    assert lexicon.ngrams.texts == ["heart attack", "心 肌", "heart - attack"]
    assert lexicon.info.left_out == 2


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"heart attack\tmany\n", ": line 1: "),
        (b"heart attack\n\nheart attack\t1\tnan\n", ": line 3: "),
        (b"heart attack\t1\t1.0\t1.0\n", ": line 1: "),
        (b"heart \xff\n", ": not UTF-8"),
        (b"heart\nliver attack\n", ": a list without an n-gram"),
    ],
)
def test_a_list_that_is_wrong_is_refused(folder: Path, content: bytes, where: str) -> None:
    (folder / "phrases.tsv").write_bytes(content)
    error = corpus_of(folder, folder / "phrases.tsv").refused()
    assert error.startswith(f"error: {folder / 'phrases.tsv'}{where}")
    assert not (folder / "corpus").exists()


def test_an_edited_lexicon_is_a_list_of_ones_own(folder: Path) -> None:
    """It keeps the words into which its segmenter split Chinese text, but not the account of its counting."""
    text = ["--input", str(folder / "text.txt"), "--vocab", str(folder / "vocab.txt")]
    path = folder / "lexicon.tsv"
    build("lexicon", *text, "--top", "2:9", "--segmenter", "jieba", "--output", str(path))
    assert "a list of your own" not in corpus_of(folder, path).stderr
    shutil.rmtree(folder / "corpus")
    path.write_text("ngram\tcount\tt\nattack after\t1\t1.0\n心肌 heart\t1\t0.5\n")
    with pytest.raises(InputError, match="its SHA-256 differs"):
        Lexicon.load(path)
    done = corpus_of(folder, path)
    assert "a list of your own, not counted here: 2 n-grams\n" in done.stderr
    assert cut(folder) == ["heart", "attack after", "a", "heart", "attack"]
    kept = Lexicon.load(folder / "corpus/lexicon.tsv")
    assert kept.ngrams.texts == ["attack after", "心肌 heart"]
    assert (kept.info.han, kept.info.own, kept.info.top) == ("jieba", "lexicon.tsv", {})
    info_path(path).write_text("{}")
    assert str(info_path(path)) in corpus_of(folder, path, "other").stderr
