"""Checks of whole corpora: every file is compared with its digest, at once or in a background thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

from reader.corpus.file_digests import check_files
from reader.corpus.memmap import Corpus, CorpusInfo
from reader.system.progress import progress


def check_corpus(path: Path) -> str:
    """Check a corpus and its files, and show the progress; return a summary. Raises InputError if a file is damaged."""
    info = CorpusInfo.load(path)
    size = sum((path / name).stat().st_size for name in info.digests if (path / name).is_file())
    with progress(f"checking {path}", size, "B") as bar:
        check_files(path, info.digests, bar.update)
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
                check_files(corpus.path, corpus.info.digests)
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
