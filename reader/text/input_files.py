"""Which files hold the text that a user means."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from reader.errors import InputError

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz")
CORPUS_INFO = "corpus.json"  # of a folder that is a corpus, and holds no text


def find_files(inputs: list[str], other: Iterable[Path] = ()) -> list[Path]:
    """The text files that `inputs` (files, folders or globs) name, sorted, each once.

    `other` files that may lie among them, such as a vocabulary, are no text unless they are named. Raises InputError
    for an input that names nothing, and for a file of an unknown kind.
    """
    found: dict[Path, Path] = {}
    others = {path.resolve() for path in other}
    for name in inputs:
        path = Path(name)
        matches = [path] if path.exists() else [Path(match) for match in glob.glob(name, recursive=True)]
        if not matches:
            raise InputError(f"{name}: no such file, folder or pattern")
        files: list[Path] = []
        for match in matches:
            if match.is_dir():
                files += _files_below(match)
            elif match.is_file():  # and no link to nowhere
                if not match.name.endswith(SUFFIXES):
                    raise InputError(f"{match}: cannot tell its format; expected one of {', '.join(SUFFIXES)}")
                files.append(match)
        files = [file for file in files if file == path or file.resolve() not in others]
        if not files:
            raise InputError(f"{name}: no text there; expected {', '.join(SUFFIXES)} files")
        found.update((file.resolve(), file) for file in files)
    return sorted(found.values())


def _files_below(folder: Path) -> Iterator[Path]:
    """The text files in a folder and all below it, links followed; not what is hidden, or part of a corpus."""
    seen: set[Path] = set()
    for name, folders, files in os.walk(folder, followlinks=True):
        here = Path(name)
        if here.resolve() in seen or CORPUS_INFO in files:
            folders.clear()
            continue
        seen.add(here.resolve())
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (here / each for each in files if each.endswith(SUFFIXES) and not each.startswith("."))
        yield from (path for path in paths if path.is_file())


def shard_of(paths: list[Path], shard: int, shards: int) -> list[Path]:
    """The files of one of several shards (0..shards - 1): all come in their order, and about as many bytes in each.

    Raises InputError if there are fewer files than shards.
    """
    if len(paths) < shards:
        raise InputError(
            f"--shard: {len(paths)} files cannot be dealt to {shards} shards; cut the text into more files"
        )
    ends = np.cumsum([path.stat().st_size for path in paths])
    # A file goes where its middle lies; every shard has one at least.
    middles = ends - np.diff(ends, prepend=0) / 2
    places = np.minimum((middles * shards / max(1, ends[-1])).astype(int), shards - 1)
    for i in range(len(paths)):
        least, most = shards - (len(paths) - i), i
        places[i] = min(max(places[i], least, places[i - 1] if i else 0), most, (places[i - 1] + 1) if i else 0)
    return [path for path, place in zip(paths, places, strict=True) if place == shard]
