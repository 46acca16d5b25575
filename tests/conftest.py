"""What the tests share: small real text (the pydoc topics every Python has) and all that is built from it."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics

import pytest

from reader.corpus.memmap import Corpus
from tests.support.commands import build
from tests.support.runs import pretrain


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.txt, held_out.txt, vocab.txt, lexicon.tsv, corpus/ and held_out/."""
    folder = tmp_path_factory.mktemp("built")
    names = sorted(topics)
    for name, chosen in (("train", names[::8] + names[1::8]), ("held_out", names[2::40])):
        text = "\n\n".join(topics[topic] for topic in chosen)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    train, vocab, lexicon = (str(folder / name) for name in ("train.txt", "vocab.txt", "lexicon.tsv"))
    build("vocab", "--input", train, "--size", "1000", "--output", vocab)
    build("lexicon", "--input", train, "--vocab", vocab, "--top", "2:400,3:200", "--output", lexicon)
    for name, corpus in (("train", "corpus"), ("held_out", "held_out")):
        text = str(folder / f"{name}.txt")
        build("corpus", "--input", text, "--vocab", vocab, "--lexicon", lexicon, "--output", str(folder / corpus))
    return folder


@pytest.fixture(scope="session")
def corpus(built: Path) -> Corpus:
    return Corpus(built / "corpus")


@pytest.fixture(scope="session")
def finished(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of an undisturbed run of 24 steps, with dropout."""
    output = tmp_path_factory.mktemp("finished") / "run"
    done = pretrain(built, output, "--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12")
    assert done.returncode == 0, done.stderr
    return output
