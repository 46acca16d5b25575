"""The stored corpus: what it holds, how it is cut into sequences, and what it refuses."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from reader.corpus.memmap import Corpus
from reader.errors import InputError
from tests.support.commands import build, kill_when, python


def tokens_of(corpus: Corpus, units: np.ndarray) -> list[int]:
    """The tokens that units stand for."""
    tokens: list[int] = []
    for unit in units:
        ngram = int(unit) - corpus.info.num_tokens
        if ngram < 0:
            tokens.append(int(unit))
        else:
            tokens += corpus.ngram_tokens[corpus.ngram_offsets[ngram] : corpus.ngram_offsets[ngram + 1]].tolist()
    return tokens


def test_documents_hold_the_tokens_of_their_text(built: Path, corpus: Corpus) -> None:
    """Units, spelt out, are what a plain BERT tokenizer makes of each document."""
    tokenizer = Tokenizer(WordPiece(corpus.vocabulary.ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    documents: list[list[int]] = [[]]
    for line in (built / "train.txt").read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            documents.append([])
        documents[-1] += tokenizer.encode(line, add_special_tokens=False).ids
    expected = [tokens for tokens in documents if tokens]
    assert [tokens_of(corpus, corpus.units[a:b]) for a, b in pairwise(corpus.documents)] == expected
    assert corpus.info.tokens == sum(map(len, expected))
    assert corpus.info.documents == len(expected)


def test_ngrams_are_spelt_as_the_lexicon_says(corpus: Corpus) -> None:
    assert corpus.lexicon is not None
    for index, ngram in enumerate(corpus.lexicon.ngrams.texts()):
        tokens = tokens_of(corpus, np.array([corpus.info.num_tokens + index]))
        spelt = " ".join(corpus.vocabulary.tokens[token] for token in tokens).replace(" ##", "")
        assert spelt == ngram
        assert corpus.names.text(corpus.info.num_tokens + index) == spelt
        assert corpus.unit_tokens[corpus.info.num_tokens + index] == len(tokens)


def test_counts_add_up(corpus: Corpus) -> None:
    assert np.array_equal(corpus.unit_counts, np.bincount(corpus.units, minlength=corpus.num_units))
    assert corpus.info.ngram_units == (corpus.units >= corpus.info.num_tokens).sum() > 1000
    assert corpus.units.dtype == np.uint16
    tokens = np.array(tokens_of(corpus, corpus.units))
    assert np.array_equal(corpus.token_counts, np.bincount(tokens, minlength=corpus.info.num_tokens))


@pytest.mark.parametrize("length", [12, 32, 100000])
def test_sequences_cover_all_and_are_as_long_as_can_be(corpus: Corpus, length: int) -> None:
    starts = corpus.sequences(length)
    assert starts[0] == 0
    assert starts[-1] == corpus.info.units
    assert set(corpus.documents) <= set(starts)
    sizes = corpus.unit_tokens[corpus.units]
    ends = set(corpus.documents.tolist())
    for a, b in pairwise(starts):
        assert 0 < sizes[a:b].sum() <= length - 2
        assert b in ends or sizes[a : b + 1].sum() > length - 2


def test_too_short_sequences_are_refused(corpus: Corpus) -> None:
    with pytest.raises(InputError, match=r"data\.max_seq_len: 9 is too short"):
        corpus.sequences(9)


def test_without_a_lexicon_every_unit_is_a_token(built: Path, tmp_path: Path, corpus: Corpus) -> None:
    arguments = ["--input", str(built / "train.txt"), "--vocab", str(built / "vocab.txt")]
    build("corpus", *arguments, "--output", str(tmp_path / "tokens"))
    plain = Corpus(tmp_path / "tokens")
    assert plain.info.num_ngrams == plain.info.ngram_units == 0
    assert plain.units.tolist() == tokens_of(corpus, corpus.units)
    assert plain.info.fingerprint != corpus.info.fingerprint


def test_the_fingerprint_names_all_that_made_it(built: Path, tmp_path: Path, corpus: Corpus) -> None:
    common = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    build("corpus", "--input", str(built / "train.txt"), *common, "--output", str(tmp_path / "same"))
    assert Corpus(tmp_path / "same").info == corpus.info
    for name in ("units.bin", "documents.bin", "unit_counts.npy"):
        assert (tmp_path / "same" / name).read_bytes() == (built / "corpus" / name).read_bytes()
    assert Corpus(built / "held_out").info.fingerprint != corpus.info.fingerprint


def test_damage_is_noticed(built: Path, tmp_path: Path) -> None:
    def copy() -> Path:
        shutil.rmtree(tmp_path / "c", ignore_errors=True)
        return Path(shutil.copytree(built / "corpus", tmp_path / "c"))

    path = copy()
    (path / "units.bin").write_bytes((path / "units.bin").read_bytes()[:-2])
    with pytest.raises(InputError, match=r"units\.bin: expected \d+ bytes"):
        Corpus(path)
    path = copy()
    (path / "ngram_offsets.npy").write_bytes(b"")
    with pytest.raises(InputError, match=r"ngram_offsets\.npy: damaged"):
        Corpus(path)
    path = copy()
    info = json.loads((path / "corpus.json").read_text())
    (path / "corpus.json").write_text(json.dumps(info | {"format": 99}))
    with pytest.raises(InputError, match="corpus format 99"):
        Corpus(path)
    path = copy()
    (path / "vocab.txt").write_text((path / "vocab.txt").read_text().replace("the\n", "teh\n"))
    with pytest.raises(InputError, match="not the vocabulary"):
        print(Corpus(path).vocabulary)
    with pytest.raises(InputError, match="no corpus there"):
        Corpus(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--cased"], "--lexicon: it was made with another vocabulary"),
        (["--vocab", "nowhere.txt"], "nowhere.txt: cannot read the vocabulary"),
        (["--lexicon", "nowhere.tsv"], "nowhere.tsv: no such lexicon"),
        (["--input", "nowhere"], "nowhere: no such file, folder or pattern"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(built: Path, tmp_path: Path, change: list[str], message: str) -> None:
    arguments = ["--input", str(built / "train.txt"), "--vocab", str(built / "vocab.txt")]
    arguments += ["--lexicon", str(built / "lexicon.tsv"), "--output", str(tmp_path / "c"), *change]
    done = python("-m", "reader.build", "corpus", *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_text_that_fails_half_way_leaves_nothing(built: Path, tmp_path: Path) -> None:
    good = "a line of good text\n" * 300000
    (tmp_path / "bad.txt").write_bytes(good.encode() + b"\xff\n")
    output = tmp_path / "c"
    arguments = ["--input", str(tmp_path / "bad.txt"), "--vocab", str(built / "vocab.txt"), "--output", str(output)]
    done = python("-m", "reader.build", "corpus", *arguments)
    assert done.returncode == 2
    assert "bad.txt:300001: not UTF-8" in done.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


def test_a_result_is_not_overwritten_unasked(built: Path) -> None:
    before = (built / "vocab.txt").read_bytes()
    arguments = ["--input", str(built / "train.txt"), "--output", str(built / "vocab.txt")]
    done = python("-m", "reader.build", "vocab", *arguments, "--size", "500")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert (built / "vocab.txt").read_bytes() == before


@pytest.mark.parametrize("stage", ["cut/0", "cut/2", "cut/*"])
def test_a_killed_build_goes_on(built: Path, tmp_path: Path, stage: str) -> None:
    (tmp_path / "text.txt").write_bytes((built / "train.txt").read_bytes() * 40)
    text = ["--input", str(tmp_path / "text.txt"), "--workers", "2"]
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    command = ["-m", "reader.build", "corpus", *text, *made_with, "--output"]
    work = tmp_path / ".corpus.work"
    wanted = 3 if stage.endswith("*") else 1
    kill_when([*command, str(tmp_path / "corpus")], lambda: len(list(work.glob(stage))) >= wanted)
    assert not (tmp_path / "corpus").exists()
    assert len(list(work.glob(stage))) >= wanted
    for name in ("corpus", "undisturbed"):
        done = python(*command, str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    assert not work.exists()
    files = sorted(path.name for path in (tmp_path / "corpus").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "undisturbed").iterdir())
    for name in files:
        assert (tmp_path / "corpus" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name


def test_shards_joined_are_the_corpus_of_all(built: Path, tmp_path: Path) -> None:
    text = (built / "train.txt").read_text(encoding="utf-8")
    documents = text.split("\n\n")
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("\n\n".join(documents[i::5][: 2 + 3 * i]), encoding="utf-8")
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv")]
    command = ["corpus", "--input", str(tmp_path / "?.txt"), *made_with, "--output"]
    shards = [str(tmp_path / f"shard_{i}") for i in (1, 2, 3)]
    for i, name in enumerate(shards, start=1):
        build(*command, name, "--shard", f"{i}/3")
    build("join", "--input", *shards, "--output", str(tmp_path / "joined"))
    build(*command, str(tmp_path / "whole"))
    joined, whole = Corpus(tmp_path / "joined"), Corpus(tmp_path / "whole")
    for name in ("units", "documents", "unit_counts", "ngram_tokens", "ngram_offsets"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    assert joined.info.fingerprint != whole.info.fingerprint  # it cannot be known that the texts are the same
    done = python("-m", "reader.build", *command, str(tmp_path / "none"), "--shard", "1/6")
    assert done.stderr.splitlines()[-1].startswith("error: --shard: 5 files cannot be divided into 6 shards")
    build("corpus", "--input", str(tmp_path / "0.txt"), *made_with[:2], "--output", str(tmp_path / "other"))
    wrong = ["join", "--input", shards[0], str(tmp_path / "other"), "--output", str(tmp_path / "x")]
    done = python("-m", "reader.build", *wrong)
    assert "made with another lexicon than" in done.stderr


def test_packed_sequences_go_on_into_the_next_document(corpus: Corpus) -> None:
    starts, packed = corpus.sequences(64), corpus.sequences(64, packed=True)
    tokens = np.add.reduceat(corpus.unit_tokens[corpus.units], packed[:-1])
    assert packed[-1] == starts[-1] == corpus.info.units
    assert len(packed) < len(starts)
    assert tokens.max() <= 62
    # No sequence but the last could have taken another unit.
    following = corpus.unit_tokens[corpus.units[packed[1:-1]]]
    assert (tokens[:-1] + following > 62).all()


def test_more_segments_than_files_may_be_open(built: Path, tmp_path: Path) -> None:
    content = (built / "train.txt").read_bytes()
    (tmp_path / "text.txt").write_bytes(content * (30_000_000 // len(content)))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))"
    small = "from reader import build; from reader.text import map_segments; map_segments.MAX_SEGMENT_BYTES = 1 << 20"
    limited = f"{limit}; {small}; build.main()"
    made_with = ["--vocab", str(built / "vocab.txt"), "--lexicon", str(built / "lexicon.tsv"), "--workers", "1"]
    text = ["--input", str(tmp_path / "text.txt")]
    done = python("-c", limited, "corpus", *text, *made_with, "--output", str(tmp_path / "corpus"))
    assert done.returncode == 0, done.stderr
    assert Corpus(tmp_path / "corpus").info.units > 1_000_000


def test_more_shards_than_files_may_be_open(built: Path, tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30)); from reader import build"
    shards = [str(built / "corpus")] * 20
    done = python("-c", f"{limit}; build.main()", "join", "--input", *shards, "--output", str(tmp_path / "joined"))
    assert done.returncode == 0, done.stderr
    assert Corpus(tmp_path / "joined").info.units == 20 * Corpus(built / "corpus").info.units
