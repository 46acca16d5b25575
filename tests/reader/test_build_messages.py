"""What the commands of the reader print about their result."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.build import main
from reader.lexicon.lexicon_file import Lexicon
from tests.support.commands import build, call


@pytest.fixture
def small_text(tmp_path: Path) -> Path:
    """A text with 10 bigrams that occur 20 times, and 30 that occur once or twice."""
    lines = [f"aa{i} bb{i}" for i in range(10)] * 20 + [f"cc{i} dd{i}" for i in range(30)]
    lines += [f"cc{i} dd{i}" for i in range(15)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return tmp_path / "text.txt"


def test_a_lexicon_of_rare_ngrams_says_so_and_its_advice_holds(built: Path, tmp_path: Path, small_text: Path) -> None:
    common = ["lexicon", "--input", str(small_text), "--vocab", str(built / "vocab.txt"), "--output"]
    done = call(main, *common, str(tmp_path / "all.tsv"), "--top", "2:1000")
    assert done.returncode == 0, done.stderr
    expected = (
        "30 of 40 n-grams (75%) occur only once or twice: --min_count 3 would keep the other 10; "
        "--top 2:20 would keep the better half, with 10 such n-grams"
    )
    assert expected in done.stdout.splitlines()
    for options, sizes in ((["--top", "2:1000", "--min_count", "3"], (10, 0)), (["--top", "2:20"], (20, 10))):
        name = str(tmp_path / f"{len(options)}.tsv")
        build(*common, name, *options)
        counts = Lexicon.load(Path(name)).ngrams.counts
        assert (len(counts), (counts <= 2).sum()) == sizes


def test_a_lexicon_of_frequent_ngrams_prints_no_note(built: Path, tmp_path: Path, small_text: Path) -> None:
    common = ["lexicon", "--input", str(small_text), "--vocab", str(built / "vocab.txt")]
    done = call(main, *common, "--top", "2:12", "--output", str(tmp_path / "lexicon.tsv"))
    assert done.returncode == 0, done.stderr
    assert "once or twice" not in done.stdout


def test_one_of_a_thing_is_singular(built: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("new york\n")
    vocab, text = ["--vocab", str(built / "vocab.txt")], ["--input", str(tmp_path / "text.txt")]
    lexicon, corpus = str(tmp_path / "lexicon.tsv"), str(tmp_path / "corpus")
    shown = call(main, "lexicon", *text, *vocab, "--top", "2:1", "--output", lexicon).stdout
    assert f"{lexicon}: 1 n-gram (1 of 2 words); 2 words counted; " in shown
    shown = call(main, "corpus", *text, *vocab, "--lexicon", lexicon, "--output", corpus).stdout
    assert f"{corpus}: 1 document, " in shown
    assert ", 1 unit; 1 n-gram with 100.0% of all tokens; 0.00% of all tokens are [UNK]" in shown
    shown = call(main, "inspect", lexicon, *text, *vocab).stdout
    assert "2 words: 1 of 1 requested; the text has 1 occurrence\n" in shown
    assert " in 1 unit: 100.0% of the tokens are in n-grams (1 n-gram, 1 distinct: " in shown


def test_help_distinguishes_threshold_from_min_count() -> None:
    shown = " ".join(call(main, "lexicon", "--help").stdout.split())
    assert "hint for the speed, which does not change the lexicon" in shown
    assert "Unlike --threshold, it changes the lexicon" in shown
