"""A corpus whose bytes changed at the same size is noticed: by `check`, by `join`, and by training."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

import pytest

from ernie_gram.run.run_log import read_log
from reader.build import main
from reader.corpus import memmap
from reader.corpus.memmap import Corpus, background_check, file_digest
from tests.support.commands import call
from tests.support.further_cases import only
from tests.support.runs import pretrain

FILES = [
    *("documents.bin", "units.bin", "ngram_offsets.npy", "ngram_tokens.npy", "unit_counts.npy"),
    *("lexicon.tsv", "lexicon.tsv.json", "vocab.txt", "vocab.txt.json"),
]


@pytest.fixture
def copied(built: Path, tmp_path: Path) -> Path:
    """A folder with copies of corpus/ and held_out/, which tests may damage."""
    for name in ("corpus", "held_out"):
        shutil.copytree(built / name, tmp_path / name)
    return tmp_path


def swap_two_units(path: Path) -> None:
    """Change a units.bin so that its size and the counts of its units stay the same."""
    content = bytearray(path.read_bytes())
    other = next(i for i in range(2, len(content), 2) if content[i : i + 2] != content[:2])
    content[:2], content[other : other + 2] = content[other : other + 2], content[:2]
    path.write_bytes(content)


def test_digests_are_those_of_b2sum(corpus: Corpus) -> None:
    assert sorted(corpus.info.digests) == sorted(FILES)
    path = corpus.path / "units.bin"
    if shutil.which("b2sum"):
        shown = subprocess.run(["b2sum", "--length", "256", path], capture_output=True, text=True, check=True)
        assert corpus.info.digests["units.bin"] == shown.stdout.split()[0]
    assert corpus.info.digests["units.bin"] == file_digest(path)


def test_check_names_every_damaged_or_missing_file(copied: Path) -> None:
    assert call(main, "check", str(copied / "corpus")).ok().stdout.startswith(f"{copied / 'corpus'}: 9 files (")
    swap_two_units(copied / "held_out" / "units.bin")
    (copied / "corpus" / "documents.bin").unlink()
    done = call(main, "check", str(copied / "corpus"), str(copied / "held_out"), str(copied / "none"))
    assert done.returncode == 2
    changed = "the content does not match the digest in corpus.json; build the corpus again"
    for text in (f"corpus/documents.bin: {changed}", f"held_out/units.bin: {changed}", "none: no corpus there"):
        assert f"{copied / text}" in done.stderr.splitlines()[-1]


def test_join_refuses_a_damaged_corpus(copied: Path) -> None:
    swap_two_units(copied / "held_out" / "units.bin")
    done = call(main, "join", "--input", *(str(copied / name) for name in ("corpus", "held_out")), "--output", "x")
    assert done.returncode == 2
    assert f"error: {copied / 'held_out' / 'units.bin'}: " in done.stderr
    assert not Path("x").exists()


@pytest.mark.parametrize("name", only(["held_out"], ["corpus", "held_out"]))
def test_training_stops_without_a_checkpoint(copied: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The check is slowed down, so that training reaches step 4, where a checkpoint is due, before the check ends."""
    swap_two_units(copied / name / "units.bin")
    output = copied / "run"

    def slow(path: Path, *_: object) -> str:
        deadline = time.monotonic() + 60
        while not any(record["step"] == 4 for record in read_log(output)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return file_digest(path)

    monkeypatch.setattr(memmap, "file_digest", slow)
    done = pretrain(copied, output, "--trainer.max_steps=8", "--trainer.save_every=4")
    assert done.returncode == 2
    expected = f"error: {copied / name / 'units.bin'}: the content does not match the digest in corpus.json"
    assert done.stderr.splitlines()[-1].startswith(expected)
    # Training goes on while the thread that writes the checkpoint waits for the check.
    assert max(record["step"] for record in read_log(output)) >= 4
    assert not list(output.glob("step_*"))


def test_training_stops_at_the_next_batch_after_the_check(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap_two_units(copied / "corpus" / "units.bin")

    def finished(corpora: Iterable[Corpus]) -> Future[None]:
        check = background_check(corpora)
        check.exception()  # waits for it
        return check

    monkeypatch.setattr("ernie_gram.pretraining.job.background_check", finished)
    done = pretrain(copied, copied / "run", "--trainer.max_steps=8")
    assert done.returncode == 2
    assert "units.bin" in done.stderr.splitlines()[-1]
    assert not [record for record in read_log(copied / "run") if record["kind"] == "train"]
