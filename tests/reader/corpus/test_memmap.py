"""The stored corpus: its counts, and its checks when it is opened."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import Corpus, check_corpus
from reader.errors import InputError


@pytest.mark.parametrize("name", ["units.bin", "documents.bin"])
def test_a_file_that_becomes_shorter_while_it_is_in_use_is_an_error(built: Path, tmp_path: Path, name: str) -> None:
    """Reading beyond the end of a mapped file would kill the process with SIGBUS."""
    corpus = Corpus(Path(shutil.copytree(built / "corpus", tmp_path / "c")))
    feeder = Feeder(corpus, 32, Masking(True, 0.15, 1))
    indices = np.arange(4)
    feeder.batch(indices, indices)
    path = corpus.path / name
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(InputError, match=rf"{name}: expected \d+ bytes, found \d+; it has become shorter"):
        feeder.batch(indices, indices)
    path.unlink()
    feeder.batch(indices, indices)


def test_opening_a_damaged_corpus_fails(built: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(built / "corpus", tmp_path / "c"))
    content = (path / "corpus.json").read_text()
    info = json.loads(content)
    (path / "corpus.json").write_text(json.dumps(info | {"format": 99}))
    with pytest.raises(InputError, match="corpus format 99"):
        Corpus(path)
    for wrong in (
        content.rstrip()[:-1],
        "{}",
        "[]",
        json.dumps(info | {"digests": None}),
        json.dumps(info | {"units": "7"}),
    ):
        (path / "corpus.json").write_text(wrong)
        with pytest.raises(InputError, match=r"corpus\.json: "):
            check_corpus(path)
    (path / "corpus.json").write_text(content)
    (path / "vocab.txt").write_text((path / "vocab.txt").read_text().replace("the\n", "teh\n"))
    with pytest.raises(InputError, match="not the vocabulary"):
        print(Corpus(path).vocabulary)
    for other in (tmp_path / "nowhere", path / "vocab.txt"):
        with pytest.raises(InputError, match=f"^{other}: "):
            Corpus(other)
