"""Building and joining corpora with the command line: results, errors, and limits."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from reader.build import main
from reader.corpus import builder
from reader.corpus.memmap import Corpus
from reader.text import map_segments
from tests.reader.corpus.test_units import tokens_of
from tests.support.commands import build, call, python


def test_fingerprint_depends_on_everything_and_without_a_lexicon_every_unit_is_a_token(
    built: Path, tmp_path: Path, corpus: Corpus
) -> None:
    common = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    build("corpus", "--input", str(built / "train.txt"), *common, "--output", str(tmp_path / "same"))
    assert Corpus(tmp_path / "same").info == corpus.info
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


def test_joined_shards_equal_the_corpus_of_all_files(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last two of three have the same text."""
    monkeypatch.setattr(builder, "BLOCK", 1000)  # units that are counted at a time
    text = (built / "train.txt").read_text(encoding="utf-8")
    documents = text.split("\n\n")
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text(
            "\n\n".join(documents[min(i, 3) :: 5][: 2 + 3 * min(i, 3)]), encoding="utf-8"
        )
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    command = ["corpus", "--input", str(tmp_path / "?.txt"), *made_with, "--output"]
    shards = [str(tmp_path / f"shard_{i}") for i in (1, 2, 3)]
    for i, name in enumerate(shards, start=1):
        build(*command, name, "--shard", f"{i}/3")
    build("join", "--input", *shards, "--output", str(tmp_path / "joined"))
    build(*command, str(tmp_path / "whole"))
    joined, whole = Corpus(tmp_path / "joined"), Corpus(tmp_path / "whole")
    assert len({Corpus(Path(shard)).info.text for shard in shards}) == 2
    for name in ("units", "documents", "unit_counts", "ngram_tokens", "ngram_offsets"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    # The digest of the whole text cannot be computed from the digests of the shards.
    assert joined.info.fingerprint != whole.info.fingerprint
    assert "shard" not in (tmp_path / "whole" / "corpus.json").read_text()
    unsharded, other = str(tmp_path / "whole"), str(tmp_path / "other")
    build("corpus", "--input", str(tmp_path / "0.txt"), *made_with[:2], "--output", other)
    for given, message in (
        ([shards[0], shards[1], shards[1]], "the shards are 1/3, 2/3, 2/3; "),
        (shards[1:], "the shards are 2/3, 3/3; "),
        (shards[::-1], "the shards are 3/3, 2/3, 1/3; "),
        ([*shards[:2], unsharded], "the shards are 1/3, 2/3, no shard; "),
        ([unsharded, unsharded], f"{unsharded}: made of the same text as {unsharded}; "),
        ([unsharded, other], f"{other}: made with another lexicon than "),
    ):
        assert message in call(main, "join", "--input", *given, "--output", str(tmp_path / "x")).refused()
        assert not (tmp_path / "x").exists()
    error = call(main, *command, str(tmp_path / "none"), "--shard", "1/6").refused()
    assert error.startswith("error: --shard: 6 shards need as many files, but the text has 5; ")


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


def test_segments_and_shards_may_outnumber_the_limit_of_open_files(built: Path, tmp_path: Path) -> None:
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
    shards = [str(tmp_path / str(i)) for i in range(20)]
    info = json.loads((corpus / "corpus.json").read_text())
    for i, shard in enumerate(shards):
        shutil.copytree(corpus, shard, copy_function=os.symlink)
        (Path(shard) / "corpus.json").unlink()
        (Path(shard) / "corpus.json").write_text(json.dumps(info | {"text": str(i)}))
    python("-c", limited, "join", "--input", *shards, "--output", str(tmp_path / "joined")).ok()
    assert Corpus(tmp_path / "joined").info.units == 20 * info["units"]
