"""Find the text files that the command-line arguments of a user refer to."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from reader.errors import InputError

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz")
CORPUS_INFO = "corpus.json"
# The files by which a corpus is known, which contains no text. Other programs have a corpus.json too.
OF_A_CORPUS = {CORPUS_INFO, "units.bin"}


def find_files(inputs: list[str], other: Iterable[Path] = ()) -> list[Path]:
    """Return the distinct text files that `inputs` (files, folders or glob patterns) refer to, in sorted order.

    `other` lists files that are not text, such as a vocabulary. They are left out unless `inputs` names them directly,
    and so are vocabularies of models.
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
        files: list[Path] = []
        for match in matches:
            if match.is_dir():
                files += _files_below(match)
            elif match.is_file() and not _is_text_name(match.name):
                raise InputError(f"{match}: unknown file format; expected one of {', '.join(SUFFIXES)}")
            elif match.is_file() or _is_dangling(match):
                files.append(match)
        if dangling := sorted(filter(_is_dangling, files)):
            raise InputError(f"{dangling[0]}: the target of this symbolic link is missing; remove or repair the link")
        others |= {file.resolve() for file in files if file.name == "vocab.txt" and is_vocabulary(file)}
        files = [file for file in files if file == path or file.resolve() not in others]
        names = {str(file).lower() for file in files}
        if twice := sorted(file for file in files if f"{file}.gz".lower() in names):
            raise InputError(f"{twice[0]}: is there as .gz too; remove one of them, or name the files to read")
        if not files:
            raise InputError(f"{name}: refers to no text file; expected {', '.join(SUFFIXES)} files")
        found.update((file.resolve(), file) for file in files)
    return sorted(found.values())


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the text files and the dangling links in a folder and its subfolders. Symbolic links are followed.

    Hidden files, hidden folders and corpora are left out.
    """
    visited: set[Path] = set()
    for name, folders, files in os.walk(folder, onerror=_raise_unreadable, followlinks=True):
        here = Path(name)
        if here.resolve() in visited or set(files) >= OF_A_CORPUS:
            folders.clear()
            continue
        visited.add(here.resolve())
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (here / each for each in files if not each.startswith("."))
        yield from (path for path in paths if _is_dangling(path) or (_is_text_name(path.name) and path.is_file()))


def _raise_unreadable(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _is_text_name(name: str) -> bool:
    """Return whether a file with this name has text in a known format."""
    return name.lower().endswith(SUFFIXES)


def is_vocabulary(path: Path) -> bool:
    """Return whether a path is a vocabulary, and not text."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return {b"[CLS]", b"[SEP]", b"[MASK]"} <= set(file.read(1 << 16).split())


def _is_dangling(path: Path) -> bool:
    return path.is_symlink() and not path.exists()
