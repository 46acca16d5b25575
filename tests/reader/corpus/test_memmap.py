"""The stored corpus: its digests, and every change of its files is noticed before compiled code reads them."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.run.run_log import read_log
from reader.batches.feeder import Feeder, Masking
from reader.corpus import memmap
from reader.corpus.memmap import Corpus, background_check, check_corpus, file_digest
from reader.errors import InputError
from tests.support.further_cases import only
from tests.support.runs import pretrain

FILES = [
    *("documents.bin", "units.bin", "ngram_offsets.npy", "ngram_tokens.npy", "unit_counts.npy"),
    *("lexicon.tsv", "lexicon.tsv.json", "vocab.txt", "vocab.txt.json"),
]


Change = Callable[[bytes], bytes]
Edit = Callable[[np.ndarray], np.ndarray]


def raw(dtype: type, change: Edit) -> Change:
    """Return a function that changes the numbers of a file without a header."""
    return lambda content: change(np.frombuffer(content, dtype).copy()).tobytes()


def saved(change: Edit) -> Change:
    """Return a function that replaces the array in the content of a .npy file."""

    def change_file(content: bytes) -> bytes:
        made = io.BytesIO()
        np.save(made, change(np.load(io.BytesIO(content))))
        return made.getvalue()

    return change_file


def assigned(place: int, value: int) -> Edit:
    def change(values: np.ndarray) -> np.ndarray:
        values[place] = value
        return values

    return change


def claims_many(content: bytes) -> bytes:
    """Let the header of a .npy file claim 10^12 numbers."""
    end = content.index(b"\n") + 1
    header = content[:end]
    first, last = header.index(b"(") + 1, header.index(b",)")
    many = header[:first] + b"1000000000000" + header[last:]
    return many.rstrip().ljust(end - 1) + b"\n" + content[end:]


def with_key(key: str, change: Callable[[int], int]) -> Change:
    return lambda content: json.dumps((info := json.loads(content)) | {key: change(info[key])}).encode()


DAMAGES: dict[str, tuple[str, Change]] = {
    "an offset far outside": ("documents.bin", raw(np.int64, assigned(2, -(2**50)))),
    "offsets that are not sorted": ("documents.bin", raw(np.int64, assigned(1, 10**6))),
    "a first offset that is not 0": ("documents.bin", raw(np.int64, assigned(0, 1))),
    "an empty document": ("documents.bin", raw(np.int64, assigned(1, 0))),
    "an unknown unit": ("units.bin", raw(np.uint16, assigned(1000, 65_535))),
    "no units": ("units.bin", lambda content: b""),
    "too few units": ("units.bin", lambda content: content[:-2]),
    "an empty array": ("ngram_offsets.npy", lambda content: b""),
    "an n-gram far outside": ("ngram_offsets.npy", saved(assigned(3, -(2**50)))),
    "n-grams that are not sorted": ("ngram_offsets.npy", saved(assigned(3, 2**40))),
    "another last offset": ("ngram_offsets.npy", saved(assigned(-1, 10**9))),
    "too few offsets": ("ngram_offsets.npy", saved(lambda values: values[:-1])),
    "offsets of another type": ("ngram_offsets.npy", saved(lambda values: values.astype(np.float64))),
    "offsets of another shape": ("ngram_offsets.npy", saved(lambda values: values[:, None])),
    "a claim of 10^12 numbers": ("ngram_offsets.npy", claims_many),
    "a header that ends early": ("ngram_offsets.npy", lambda content: content[:8] + b"\x01" + content[9:]),
    "a negative token": ("ngram_tokens.npy", saved(assigned(0, -(2**31)))),
    "an unknown token": ("ngram_tokens.npy", saved(assigned(0, 1000))),
    "too few tokens": ("ngram_tokens.npy", saved(lambda values: values[:-1])),
    "a negative count": ("unit_counts.npy", saved(assigned(5, -7))),
    "a zip archive": ("unit_counts.npy", lambda content: b"PK\x03\x04" + content),
    "another number of units": ("corpus.json", with_key("units", lambda value: value + 1)),
    "another number of documents": ("corpus.json", with_key("documents", lambda value: value - 1)),
    "another number of n-grams": ("corpus.json", with_key("num_ngrams", lambda value: 10**30)),
    "another number of tokens": ("corpus.json", with_key("tokens", lambda value: 0)),
    "a negative number": ("corpus.json", with_key("num_tokens", lambda value: -value)),
}


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


def damage(path: Path, change: Change) -> None:
    content = path.read_bytes()
    path.write_bytes(change(content))
    assert path.read_bytes() != content


@pytest.mark.parametrize("case", DAMAGES)
def test_the_error_names_the_damaged_file_even_if_its_digest_fits(copied: Path, case: str) -> None:
    (name, change), folder = DAMAGES[case], copied / "corpus"
    damage(folder / name, change)
    with pytest.raises(InputError) as error:
        Corpus(folder)
    assert str(error.value).startswith(f"{folder / name}: ")
    assert str(error.value).count(str(folder)) == 1
    if name != "corpus.json":
        info = json.loads((folder / "corpus.json").read_text())
        info["digests"][name] = file_digest(folder / name)
        (folder / "corpus.json").write_text(json.dumps(info))
        with pytest.raises(InputError, match=rf"corpus\.json: .*{name}"):
            Corpus(folder)


@pytest.mark.parametrize("name", ["units.bin", "documents.bin"])
def test_a_file_that_becomes_shorter_while_it_is_in_use_is_an_error(copied: Path, name: str) -> None:
    """Reading beyond the end of a mapped file would kill the process with SIGBUS."""
    corpus = Corpus(copied / "corpus")
    feeder = Feeder(corpus, 32, Masking(True, 0.15, 1))
    indices = np.arange(4)
    feeder.batch(indices, indices)
    path = corpus.path / name
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(InputError, match=rf"{name}: expected \d+ bytes, found \d+; it has become shorter"):
        feeder.batch(indices, indices)
    path.unlink()
    feeder.batch(indices, indices)


def test_a_damaged_description_and_another_vocabulary_are_refused(copied: Path) -> None:
    path = copied / "corpus"
    content = (path / "corpus.json").read_text()
    info = json.loads(content)
    (path / "corpus.json").write_text(json.dumps(info | {"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        Corpus(path)
    wrong_types = (json.dumps(info | wrong) for wrong in ({"digests": None}, {"units": "7"}))
    for wrong in (content.rstrip()[:-1], "{}", "[]", *wrong_types):
        (path / "corpus.json").write_text(wrong)
        with pytest.raises(InputError, match=r"corpus\.json: "):
            check_corpus(path)
    (path / "corpus.json").write_text(content)
    (path / "vocab.txt").write_text((path / "vocab.txt").read_text().replace("the\n", "teh\n"))
    with pytest.raises(InputError, match="that is the vocabulary"):
        print(Corpus(path).vocabulary)
    for other in (copied / "nowhere", path / "vocab.txt"):
        with pytest.raises(InputError, match=f"^{other}: "):
            Corpus(other)


CHANGED = "the content does not match the digest in corpus.json; build the corpus again"


@pytest.mark.parametrize(
    ("change", "what"), [(swap_two_units, CHANGED), (Path.unlink, "missing; build the corpus again")]
)
def test_check_names_a_damaged_or_missing_file(copied: Path, change: Callable[[Path], None], what: str) -> None:
    folder = copied / "corpus"
    assert check_corpus(folder).startswith("9 files (")
    change(folder / "units.bin")
    with pytest.raises(InputError) as error:
        check_corpus(folder)
    assert str(error.value) == f"{folder / 'units.bin'}: {what}"


@pytest.mark.parametrize("name", ["corpus", "held_out"])
def test_check_of_a_run_compares_the_digests(copied: Path, name: str) -> None:
    """Two units that changed places fit the counts and the other files."""
    assert pretrain(copied, copied / "run", "--check").stdout.count("match their digests") == 2
    swap_two_units(copied / name / "units.bin")
    error = pretrain(copied, copied / "run", "--check").refused()
    assert error.startswith(f"error: {copied / name / 'units.bin'}: ")


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
    assert done.refused().startswith(f"error: {copied / name / 'units.bin'}: the content does not match the digest ")
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
    assert "units.bin" in pretrain(copied, copied / "run", "--trainer.max_steps=8").refused()
    assert not [record for record in read_log(copied / "run") if record["kind"] == "train"]
