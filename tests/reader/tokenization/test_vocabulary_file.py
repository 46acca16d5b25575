"""The version of Unicode beside a vocabulary: kept from the vocabulary to the model, and noted if it is another one."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from ernie_gram.formats.registry import read_model, write_model
from reader.build import main
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary_file import load_vocabulary, note_other_unicode, unicode_path
from tests.support.commands import call
from tests.support.exported_models import random_model
from tests.support.small_model import TOKENS

NOW, THEN = unicodedata.unidata_version, "1.1.0"


def record(path: Path, version: str = THEN) -> None:
    """Change the version that is kept beside a vocabulary."""
    unicode_path(path).write_text(json.dumps({"unicode": version}))
    note_other_unicode.cache_clear()


def test_a_vocabulary_and_a_corpus_keep_the_version_and_commands_note_another(tmp_path: Path) -> None:
    text, vocab = tmp_path / "text.txt", tmp_path / "vocab.txt"
    text.write_text("a b a c\nb a c\n" * 50)
    common = ["--input", str(text), "--processes", "1"]
    done = call(main, "vocab", *common[:2], "--size", "60", "--output", str(vocab))
    assert (done.returncode, json.loads((tmp_path / "vocab.txt.json").read_text())) == (0, {"unicode": NOW})
    given = [*common, "--vocab", str(vocab)]
    assert "Unicode" not in call(main, "corpus", *given, "--output", str(tmp_path / "corpus")).stderr
    assert Corpus(tmp_path / "corpus").vocabulary.unicode == NOW
    for command in ("lexicon", "corpus"):
        record(vocab)
        done = call(main, command, *given, "--output", str(tmp_path / f"{command}_then")).ok()
        assert done.stderr.count(f"Unicode {THEN}") == 1
    assert Corpus(tmp_path / "corpus_then").vocabulary.unicode == THEN


def test_a_model_keeps_the_version_and_notes_another_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(random_model(None, vocab_size=TOKENS), tmp_path / "model", "ernie_gram")
    record(tmp_path / "model" / "vocab.txt")
    model = read_model(tmp_path / "model")
    write_model(model, tmp_path / "again", "ernie_gram")
    vocabulary = load_vocabulary(tmp_path / "again" / "vocab.txt")
    assert model.vocabulary.unicode == vocabulary.unicode == THEN
    capsys.readouterr()
    for _ in range(2):
        Tokenizer(vocabulary)
    assert capsys.readouterr().err.count(f"Unicode {THEN}") == 1
    record(tmp_path / "again" / "vocab.txt", NOW)
    Tokenizer(load_vocabulary(tmp_path / "again" / "vocab.txt"))
    assert capsys.readouterr().err == ""
    unicode_path(tmp_path / "model" / "vocab.txt").write_text("[")
    with pytest.raises(InputError, match=r"vocab\.txt\.json: "):
        read_model(tmp_path / "model")
