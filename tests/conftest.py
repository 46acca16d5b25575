"""What the tests share: small real text (the pydoc topics every Python has) and all that is built from it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from ernie_gram.run.run_log import Record, read_log
from reader.corpus.memmap import Corpus
from reader.text.text_files import TextDigest, TextFiles
from tests.objectives import as_options

ROOT = Path(__file__).resolve().parent.parent

TINY = [
    "--model.hidden_size=32",
    "--model.num_hidden_layers=2",
    "--model.num_attention_heads=4",
    "--model.out_emb_size=16",
    "--model.max_position_embeddings=32",
    "--data.max_seq_len=32",
    "--data.batch_size=8",
    "--optimizer.learning_rate=3e-3",
    "--optimizer.warmup_steps=2",
    "--trainer.log_every=1",
    "--trainer.visualdl=false",
    # The quickest objective to build; tests that are about the others ask for them, see objectives.py.
    *as_options("explicit"),
]

NO_DROPOUT = ["--model.hidden_dropout_prob=0", "--model.attention_probs_dropout_prob=0"]


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a Python command in the checkout, its output captured."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def digest_of(text: TextFiles) -> str:
    """The digest of a text that has been read to its end."""
    digest = TextDigest(text.paths, text.text_field)
    digest.add(text.paths, text.blocks)
    return digest.result()


def build(*arguments: str) -> None:
    """`python -m reader.build`, which must succeed."""
    done = python("-m", "reader.build", *arguments)
    assert done.returncode == 0, done.stderr


def kill_when(arguments: list[str], there: Callable[[], object]) -> None:
    """Start a Python command, and kill it and its children as soon as something is there (or it has ended)."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not there():
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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


def options(built: Path, output: Path, *more: str) -> list[str]:
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}", f"--paths.output={output}"]
    return [*TINY, *paths, *more]


def pretrain(built: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "ernie_gram.pretrain", *options(built, output, *more))


def train_losses(output: Path) -> list[tuple[int, float, float]]:
    records = [record for record in read_log(output) if record["kind"] == "train"]
    return [(record["step"], record["loss"], record["grad_norm"]) for record in records]


def evaluations(output: Path) -> list[Record]:
    return [record for record in read_log(output) if record["kind"] == "eval"]


@pytest.fixture(scope="session")
def finished(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of an undisturbed run of 24 steps, with dropout."""
    output = tmp_path_factory.mktemp("finished") / "run"
    done = pretrain(built, output, "--trainer.max_steps=24", "--trainer.save_every=4", "--trainer.eval_every=12")
    assert done.returncode == 0, done.stderr
    return output
