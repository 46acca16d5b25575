"""File names that stand in files: they cannot leave the folder that they belong to."""

from __future__ import annotations

from pathlib import Path

from ernie_gram.formats.untrusted.arrays import quoted
from reader.errors import InputError

MAX_FILE_NAME = 255  # bytes, the limit of common file systems


def checked_file_name(name: object) -> str:
    """Return a name of one path level; raises ValueError for "..", separators, drives and control characters."""
    if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name.encode()) <= MAX_FILE_NAME:
        raise ValueError(f"{quoted(name)} is not a file name")
    if name in (".", "..") or any(character in name for character in "/\\:"):
        raise ValueError(f"{quoted(name)} is not a name of a file in the same folder")
    return name


def safe_child(folder: Path, name: object) -> Path:
    """Return the path of a file in `folder` whose name was read from a file. The file need not exist.

    It may be a symbolic link, because Hugging Face's cache consists of links to files elsewhere. A file cannot create
    links, and what a link leads to is refused when it is read, unless it is a file of arrays.

    Raises InputError if the name is not one level of a path.
    """
    try:
        return folder / checked_file_name(name)
    except ValueError as error:
        raise InputError(f"{folder}: {error}; only files inside the folder are read") from error
