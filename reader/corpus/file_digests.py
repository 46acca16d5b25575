"""Digests of the files of a corpus: stored in corpus.json when it is built, and compared with the files later.

The digest of a file is its 32-byte BLAKE2b, so that `b2sum --length 256` prints the same one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from hashlib import blake2b
from pathlib import Path
from typing import Any

from reader.corpus.memmap import Corpus, CorpusInfo
from reader.errors import InputError
from reader.system.progress import progress
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


def check_files(folder: Path, info: CorpusInfo, report: Callable[[int], Any] = lambda size: None) -> None:
    """Compare the files of a corpus with their digests.

    Raises InputError that names each file that differs or cannot be read.
    """
    damaged = []
    for name, expected in info.digests.items():
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


def check_corpus(path: Path) -> str:
    """Check a corpus and its files, and show the progress; return a summary. Raises InputError if a file is damaged."""
    info = CorpusInfo.load(path)
    size = sum((path / name).stat().st_size for name in info.digests if (path / name).is_file())
    with progress(f"checking {path}", size, "B") as phase:
        check_files(path, info, phase.advance)
    Corpus(path)
    return f"{len(info.digests)} files ({size:,} bytes) match their digests"


class BackgroundCheck:
    """Checks the files of corpora in a background thread, so that training need not wait for it."""

    def __init__(self, corpora: Iterable[Corpus]) -> None:
        """Start the thread. It does not keep the process alive."""
        self._corpora = list(corpora)
        self._done: Future[None] = Future()
        threading.Thread(target=self._run, name="corpus check", daemon=True).start()

    def _run(self) -> None:
        try:
            for corpus in self._corpora:
                check_files(corpus.path, corpus.info)
        except BaseException as error:
            self._done.set_exception(error)
        else:
            self._done.set_result(None)

    def poll(self) -> None:
        """Raise InputError if the check has found a damaged file so far."""
        if self._done.done():
            self._done.result()

    def wait(self) -> None:
        """Wait until the check is finished. Raises InputError if it has found a damaged file."""
        self._done.result()
