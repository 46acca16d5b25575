"""Files and folders that appear whole or not at all.

Everything is written beside its final place under a hidden temporary name, flushed to disk, and then
renamed. A crash or a full disk leaves the old state, never a half-written file under the final name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reader.errors import InputError


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, as hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    return digest.hexdigest()


def flush_to_disk(path: Path) -> None:
    """Ask the kernel to put a file's (or a folder's) data on the disk now."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write; on success it becomes `path`, on any error it is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _temporary(path)
    try:
        yield partial
        flush_to_disk(partial)
        partial.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise InputError(f"{path}: could not be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; on success it becomes `path`, replacing what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _temporary(path)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        yield partial
        for file in partial.iterdir():
            flush_to_disk(file)
        flush_to_disk(partial)
        if path.exists():
            # A folder cannot be renamed onto a full one: the old one steps aside first.
            aside = path.with_name(f".{path.name}.{os.getpid()}.old")
            path.rename(aside)
            partial.rename(path)
            shutil.rmtree(aside)
        else:
            partial.rename(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise InputError(f"{path}: could not be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
