"""A damaged corpus is refused before compiled code reads it, and the error names the damaged file."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reader.corpus.memmap import Corpus, file_digest
from reader.errors import InputError
from tests.support.runs import pretrain

Change = Callable[[bytes], bytes]


def with_number(dtype: type, place: int, value: int) -> Change:
    """Return a function that replaces a number in the content of a file without a header."""

    def change(content: bytes) -> bytes:
        values = np.frombuffer(content, dtype).copy()
        values[place] = value
        return values.tobytes()

    return change


def saved(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Return a function that replaces the array in the content of a .npy file."""

    def change_file(content: bytes) -> bytes:
        made = io.BytesIO()
        np.save(made, change(np.load(io.BytesIO(content))))
        return made.getvalue()

    return change_file


def assigned(place: int, value: int) -> Change:
    def change(values: np.ndarray) -> np.ndarray:
        values[place] = value
        return values

    return saved(change)


def claims_many(content: bytes) -> bytes:
    """Let the header of a .npy file claim 10^12 numbers."""
    end = content.index(b"\n") + 1
    header = content[:end]
    first, last = header.index(b"(") + 1, header.index(b",)")
    many = header[:first] + b"1000000000000" + header[last:]
    return many.rstrip().ljust(end - 1) + b"\n" + content[end:]


def with_key(key: str, change: Callable[[int], int]) -> Change:
    def change_file(content: bytes) -> bytes:
        info = json.loads(content)
        return json.dumps(info | {key: change(info[key])}).encode()

    return change_file


DAMAGES: dict[str, tuple[str, Change]] = {
    "an offset far outside": ("documents.bin", with_number(np.int64, 2, -(2**50))),
    "offsets that are not sorted": ("documents.bin", with_number(np.int64, 1, 10**6)),
    "a first offset that is not 0": ("documents.bin", with_number(np.int64, 0, 1)),
    "an empty document": ("documents.bin", with_number(np.int64, 1, 0)),
    "an unknown unit": ("units.bin", with_number(np.uint16, 1000, 65_535)),
    "no units": ("units.bin", lambda content: b""),
    "too few units": ("units.bin", lambda content: content[:-2]),
    "an empty array": ("ngram_offsets.npy", lambda content: b""),
    "an n-gram far outside": ("ngram_offsets.npy", assigned(3, -(2**50))),
    "n-grams that are not sorted": ("ngram_offsets.npy", assigned(3, 2**40)),
    "another last offset": ("ngram_offsets.npy", assigned(-1, 10**9)),
    "too few offsets": ("ngram_offsets.npy", saved(lambda values: values[:-1])),
    "offsets of another type": ("ngram_offsets.npy", saved(lambda values: values.astype(np.float64))),
    "offsets of another shape": ("ngram_offsets.npy", saved(lambda values: values[:, None])),
    "a claim of 10^12 numbers": ("ngram_offsets.npy", claims_many),
    "a header that ends early": ("ngram_offsets.npy", lambda content: content[:8] + b"\x01" + content[9:]),
    "a negative token": ("ngram_tokens.npy", assigned(0, -(2**31))),
    "an unknown token": ("ngram_tokens.npy", assigned(0, 1000)),
    "too few tokens": ("ngram_tokens.npy", saved(lambda values: values[:-1])),
    "a negative count": ("unit_counts.npy", assigned(5, -7)),
    "a zip archive": ("unit_counts.npy", lambda content: b"PK\x03\x04" + content),
    "another number of units": ("corpus.json", with_key("units", lambda value: value + 1)),
    "another number of documents": ("corpus.json", with_key("documents", lambda value: value - 1)),
    "another number of n-grams": ("corpus.json", with_key("num_ngrams", lambda value: 10**30)),
    "another number of tokens": ("corpus.json", with_key("tokens", lambda value: 0)),
    "a negative number": ("corpus.json", with_key("num_tokens", lambda value: -value)),
}


@pytest.fixture
def copied(built: Path, tmp_path: Path) -> Path:
    """A copy of corpus/, which tests may damage."""
    return Path(shutil.copytree(built / "corpus", tmp_path / "corpus"))


def damage(path: Path, change: Change) -> None:
    content = path.read_bytes()
    path.write_bytes(change(content))
    assert path.read_bytes() != content


@pytest.mark.parametrize("case", DAMAGES)
def test_the_error_names_the_damaged_file_and_no_other(copied: Path, case: str) -> None:
    name, change = DAMAGES[case]
    damage(copied / name, change)
    with pytest.raises(InputError) as error:
        Corpus(copied)
    assert str(error.value).startswith(f"{copied / name}: ")
    assert str(error.value).count(str(copied)) == 1


@pytest.mark.parametrize("case", [case for case, (name, _) in DAMAGES.items() if name != "corpus.json"])
def test_numbers_are_checked_although_the_digests_fit(copied: Path, case: str) -> None:
    name, change = DAMAGES[case]
    damage(copied / name, change)
    info = json.loads((copied / "corpus.json").read_text())
    info["digests"][name] = file_digest(copied / name)
    (copied / "corpus.json").write_text(json.dumps(info))
    with pytest.raises(InputError, match=rf"corpus\.json: .*{name}"):
        Corpus(copied)


@pytest.mark.parametrize("name", ["corpus", "held_out"])
def test_check_of_a_run_compares_the_digests(built: Path, tmp_path: Path, name: str) -> None:
    """Two units that changed places fit the counts and the other files."""
    for each in ("corpus", "held_out"):
        shutil.copytree(built / each, tmp_path / each)
    assert pretrain(tmp_path, tmp_path / "run", "--check").stdout.count("match their digests") == 2
    path = tmp_path / name / "units.bin"
    damage(path, lambda content: content[2:4] + content[:2] + content[4:])
    done = pretrain(tmp_path, tmp_path / "run", "--check")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {path}: ")
