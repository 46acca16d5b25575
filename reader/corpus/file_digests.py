"""Digests of the files of a corpus: stored in corpus.json when it is built, and compared with the files later.

The digest of a file is its 32-byte BLAKE2b, so that `b2sum --length 256` prints the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from reader.errors import InputError
from reader.text.input_files import CORPUS_INFO

CHUNK_BYTES = 1 << 20


def file_digest(path: Path, report: Callable[[int], Any] = lambda size: None) -> str:
    """Return the digest of a file as a hexadecimal string. `report` is called with the size of each part read."""
    digest, buffer = blake2b(digest_size=32), memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            digest.update(buffer[:size])
            report(size)
    return digest.hexdigest()


def digests_in(folder: Path) -> dict[str, str]:
    """Return the digests of all files in a folder, by file name, except that of corpus.json."""
    return {path.name: file_digest(path) for path in sorted(folder.iterdir()) if path.name != CORPUS_INFO}


def check_files(folder: Path, digests: Mapping[str, str], report: Callable[[int], Any] = lambda size: None) -> None:
    """Compare the files of a corpus with their digests.

    Raises InputError that names each file that differs or cannot be read.
    """
    damaged = []
    for name, expected in digests.items():
        try:
            is_equal = file_digest(folder / name, report) == expected
        except OSError:
            is_equal = False
        if not is_equal:
            damaged.append(str(folder / name))
    if damaged:
        raise InputError(
            f"{', '.join(damaged)}: the content does not match the digest in {CORPUS_INFO}; build the corpus again"
        )
