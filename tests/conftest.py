"""Fixtures that many tests share: a small real text (the pydoc topics of Python), and everything built from it."""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

# Several test processes share the cores (pytest-xdist). Set before Paddle is imported, which reads it.
# The golden runs need one thread to be reproducible to the bit.
os.environ["OMP_NUM_THREADS"] = "1"
# On a busy machine, commands would print lines about their progress.
os.environ["TQDM_DISABLE"] = "1"

import numpy as np
import pytest
from tqdm import tqdm

from ernie_gram.distributed.loading import prepare_environment
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import Corpus
from tests.support.commands import build
from tests.support.made_once import made_once
from tests.support.runs import FINISHED, pretrain
from tests.support.tiny_task import finetune, make_task

# What the user has set for other runs.
for name in list(os.environ):
    if name in ("DATA", "NPROC", "LAUNCH_ARGS", "LOG_DIR"):
        del os.environ[name]

# A shell lets jobs in the background ignore SIGINT, and nohup SIGHUP; the commands that tests start would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Paddle keeps Python's stack for every operation. Under pytest, stacks are deep, and that takes a third of the time.
traceback.extract_stack = partial(traceback.extract_stack, limit=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked with `needs` unless all its environment variables are set, as `make data-test` sets them.

    They need real data, or four processes; or they are further cases of what other tests prove.
    """
    for item in items:
        missing = [name for mark in item.iter_markers("needs") for name in mark.args if name not in os.environ]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}; see `make data-test`"))


def pytest_collection_finish() -> None:
    """Let garbage collections start less often and leave out what was imported: programs are millions of objects."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_configure() -> None:
    """Set what Paddle reads when it is loaded, so that tests may import it before other modules."""
    prepare_environment()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.txt, held_out.txt, vocab.txt, lexicon.tsv, corpus/ and held_out/. Read only."""
    return made_once(tmp_path_factory, "built", build_all)


def build_all(folder: Path) -> None:
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
    # Compiles the functions that draw masks, once; other test processes wait for this folder.
    Feeder(Corpus(folder / "corpus"), 32, Masking(True, 0.15, 1, queries=True)).batch(np.arange(2), np.zeros(2, int))


@pytest.fixture(scope="session")
def corpus(built: Path) -> Corpus:
    return Corpus(built / "corpus")


@pytest.fixture(scope="session")
def finished(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run of 24 steps, with dropout. Tests must not change it."""
    made = made_once(tmp_path_factory, "finished", lambda folder: pretrain(built, folder / "run", *FINISHED).ok())
    return made / "run"


@pytest.fixture
def run_copy(finished: Path, tmp_path: Path) -> Path:
    """A copy of the folder of the finished run, which a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/ and data/, see tests/support/tiny_task.py. Read only."""
    return made_once(tmp_path_factory, "tiny_task", make_task)


@pytest.fixture(scope="session")
def finetuned(tiny_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished fine-tuning. Tests must not change it."""
    return made_once(tmp_path_factory, "finetuned", lambda folder: finetune(tiny_task, folder / "run").ok()) / "run"


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> dict[str, tqdm[Any]]:
    """The progress bars of this process (see reader/system/progress.py), by name, drawn nowhere; it grows."""
    made: dict[str, tqdm[Any]] = {}

    class Bar(tqdm):  # type: ignore[type-arg]
        def __init__(self, desc: str, **settings: Any) -> None:
            super().__init__(desc=desc, **(settings | {"disable": False, "file": io.StringIO()}))
            made[desc] = self

    monkeypatch.setattr("tqdm.tqdm", Bar)
    return made


@pytest.fixture
def dynamic_mode() -> Iterator[None]:
    """Switch Paddle to dynamic mode, where the test must leave it, and back to the mode that it was in."""
    import paddle

    was_dynamic = paddle.in_dynamic_mode()
    paddle.disable_static()
    yield
    assert paddle.in_dynamic_mode()
    (paddle.disable_static if was_dynamic else paddle.enable_static)()


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paddle reports a GPU, see support/pretended_gpu. The list has what is done with devices, and it grows.

    "flush_denormals" and "encoder_layers" in it are what is done for CPUs only; the former does nothing here.
    """
    from tests.support.pretended_gpu import pretend

    calls = pretend(replace=monkeypatch.setattr)
    monkeypatch.setattr("ernie_gram.distributed.device._flush_denormals", lambda: calls.append("flush_denormals"))
    from ernie_gram.model import encoder

    make = encoder.encoder_layers

    def recorded(*arguments: Any) -> Any:
        calls.append("encoder_layers")
        return make(*arguments)

    monkeypatch.setattr(encoder, "encoder_layers", recorded)
    return calls
