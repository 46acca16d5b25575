"""Find the text files that the command-line arguments of a user refer to."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from reader.errors import InputError

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz")
CORPUS_INFO = "corpus.json"
# Found in folders of models and of corpora.
VOCABULARY = "vocab.txt"


def find_files(inputs: list[str], other: Iterable[Path] = ()) -> list[Path]:
    """Return the distinct text files that `inputs` (files, folders or glob patterns) refer to, in sorted order.

    `other` lists files that are not text, such as a vocabulary. They are left out unless `inputs` names them directly,
    and so is every vocab.txt.
    Raises InputError for an input that matches no text file, for a file of an unknown format, for a symbolic link to a
    missing file or folder, for a folder that cannot be read, and for a file that is there compressed as well.
    """
    found: dict[Path, Path] = {}
    others = {path.resolve() for path in other}
    for name in inputs:
        path = Path(name)
        if not name.strip():
            raise InputError("--input: an input is empty; give files, folders or patterns")
        matches = [path] if path.exists() else [Path(match) for match in glob.glob(name, recursive=True)]
        if not matches:
            raise InputError(f"{name}: no such file, folder or pattern")
        files = [file for match in matches for file in (_files_below(match) if match.is_dir() else [match])]
        for file in sorted(files):
            if not file.exists():
                raise InputError(f"{file}: the target of this symbolic link is missing; remove or repair the link")
            if not file.name.lower().endswith(SUFFIXES):
                raise InputError(f"{file}: unknown file format; expected one of {', '.join(SUFFIXES)}")
        files = [file for file in files if file == path or not (file.name == VOCABULARY or file.resolve() in others)]
        names = {str(file).lower() for file in files}
        if twice := sorted(file for file in files if f"{file}.gz".lower() in names):
            raise InputError(f"{twice[0]}: is there as .gz too; remove one of them, or name the files to read")
        if not files:
            raise InputError(f"{name}: refers to no text file; expected {', '.join(SUFFIXES)} files")
        found.update((file.resolve(), file) for file in files)
    return sorted(found.values())


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the text files and the dangling links in a folder and its subfolders. Symbolic links are followed.

    Hidden files and hidden folders are left out.
    """
    visited: set[Path] = set()
    for name, folders, files in os.walk(folder, onerror=_raise_unreadable, followlinks=True):
        here = Path(name)
        if here.resolve() in visited:
            folders.clear()
            continue
        visited.add(here.resolve())
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for path in (here / each for each in files if not each.startswith(".")):
            if not path.exists() or (path.name.lower().endswith(SUFFIXES) and path.is_file()):
                yield path


def _raise_unreadable(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error
