"""Building corpora with the command line: results, errors, and limits."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from reader.build import main
from reader.corpus import builder
from reader.corpus.memmap import Corpus, unit_dtype
from reader.text import map_segments
from tests.reader.corpus.test_units import tokens_of
from tests.support.commands import build, call, python


def test_fingerprint_depends_on_everything_and_without_a_lexicon_every_unit_is_a_token(
    built: Path, tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sixteen bits may be enough for the tokens, but not for the n-grams.
    dtype_of = Mock(wraps=unit_dtype)
    monkeypatch.setattr(builder, "unit_dtype", dtype_of)
    common = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    build("corpus", "--input", str(built / "train.txt"), *common, "--output", str(tmp_path / "same"))
    assert Corpus(tmp_path / "same").info == corpus.info
    dtype_of.assert_called_once_with(corpus.info.num_tokens + corpus.info.num_ngrams)
    for name in ("units.bin", "documents.bin", "unit_counts.npy"):
        assert (tmp_path / "same" / name).read_bytes() == (built / "corpus" / name).read_bytes()
    assert Corpus(built / "held_out").info.fingerprint != corpus.info.fingerprint
    # Without a lexicon, and with equally many tokens, only the vocabulary tells two corpora apart.
    found = set()
    for cased in ([], ["--cased"]):
        to = tmp_path / f"tokens{len(cased)}"
        build("corpus", "--input", str(built / "train.txt"), *common[:2], *cased, "--output", str(to))
        found.add(Corpus(to).info.fingerprint)
    assert len({*found, corpus.info.fingerprint}) == 3
    plain = Corpus(tmp_path / "tokens0")
    assert plain.info.num_ngrams == plain.info.ngram_units == 0
    assert plain.units.tolist() == tokens_of(corpus, corpus.units)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--cased"], "{built}/lexicon.tsv: was made with another vocabulary"),
        (["--vocab", "nowhere.txt"], "nowhere.txt: "),
        (["--lexicon", "nowhere.tsv"], "nowhere.tsv: "),
        (["--input", "nowhere"], "nowhere: "),
    ],
)
def test_invalid_input_gives_one_line_and_no_files(built: Path, tmp_path: Path, change: list[str], named: str) -> None:
    arguments = ["--input", str(built / "train.txt"), "--vocab", str(built / "vocab.txt")]
    arguments += ["--lexicon", str(built / "lexicon.tsv"), "--output", str(tmp_path / "c"), *change]
    assert call(main, "corpus", *arguments).refused().startswith(f"error: {named.format(built=built)}")
    assert list(tmp_path.iterdir()) == []


def test_segments_may_end_between_blank_lines(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text("\n\n" + "a b\n\n\n\n\n\n\n\nc\n" * 60)
    arguments = ["--input", str(tmp_path / "text.txt"), "--vocab", str(built / "vocab.txt"), "--processes", "1"]
    build("corpus", *arguments, "--output", str(tmp_path / "whole"))
    for name in ("MIN_SEGMENT_BYTES", "MAX_SEGMENT_BYTES"):
        monkeypatch.setattr(map_segments, name, 8)
    build("corpus", *arguments, "--output", str(tmp_path / "parts"))
    whole, parts = Corpus(tmp_path / "whole"), Corpus(tmp_path / "parts")
    assert parts.documents.tolist() == whole.documents.tolist()
    assert parts.info.documents == whole.info.documents == 61


def test_segments_may_outnumber_the_limit_of_open_files(built: Path, tmp_path: Path) -> None:
    content = (built / "train.txt").read_bytes()
    (tmp_path / "text.txt").write_bytes(content * (3_000_000 // len(content)))
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\nfrom reader import build; "
    limited += (
        "from reader.text import map_segments as m; m.MIN_SEGMENT_BYTES = m.MAX_SEGMENT_BYTES = 1 << 16; build.main()"
    )
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv"), "--processes", "1"]
    corpus = tmp_path / "corpus"
    python("-c", limited, "corpus", "--input", str(tmp_path / "text.txt"), *made_with, "--output", str(corpus)).ok()
    assert Corpus(corpus).info.units > 100_000
