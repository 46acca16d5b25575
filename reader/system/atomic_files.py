"""Write files and folders atomically: they appear complete under their final name, or not at all.

Data is written next to its destination under a hidden temporary name, flushed to disk, and then renamed. After a
crash or on a full disk, the old state remains. The final name never refers to a partially written file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from reader.errors import InputError, SystemRefusedError


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the content of a file as a hexadecimal string."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    return digest.hexdigest()


def flush_to_disk(path: Path) -> None:
    """Flush the data of a file or folder from the operating system to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def nearest_folder(path: Path) -> Path:
    """Return a path if it exists, else the nearest folder above it."""
    return next(each for each in (path, *path.absolute().parents) if each.exists())


def check_writable(folder: Path) -> None:
    """Raise InputError unless files can be created in a folder, or in the nearest one above it if it does not exist."""
    if str(folder).startswith("~"):
        raise InputError(f"{folder}: ~ is not replaced here; give the whole path")
    nearest = nearest_folder(folder)
    try:
        # This file has no name, so other processes do not see it.
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise InputError(f"{folder}: nothing can be written in {nearest}: {error.strerror}") from error


def _write_error(path: Path, error: OSError) -> SystemRefusedError:
    # The error that numpy raises states how much of an array was written, but not the reason (strerror is not set).
    reason = error.strerror or f"{error} (is the disk full?)"
    return SystemRefusedError(f"{path}: could not be written: {reason}")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. On success it is renamed to `path`; on any error it is removed.

    Folders above it are created. Raises SystemRefusedError if the file cannot be written, InputError if `path` is a
    folder.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")  # another process may write the same file
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        flush_to_disk(partial)
        partial.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file as `atomic_file` does; text is written in UTF-8."""
    with atomic_file(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill. On success it is renamed to `path` and replaces an existing folder.

    Folders above it are created, and temporary files of an earlier attempt that was killed are removed. Raises
    SystemRefusedError if the folder cannot be written, InputError if `path` is a file.
    """
    partial, old = path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.old")
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file, not a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        if old.exists() and not path.exists():
            old.rename(path)  # an earlier process was killed between the two renames below
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        yield partial
        for each in partial.rglob("*"):
            flush_to_disk(each)
        flush_to_disk(partial)
        if path.exists():
            # A folder cannot replace a non-empty folder by a rename, so the existing folder is first renamed to `old`.
            # A folder `old` may still exist if an earlier process was killed before it removed that folder.
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        partial.rename(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise _write_error(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(old, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder if it exists. If the process is killed during this, no partial folder remains under its name."""
    removed = path.with_name(f".{path.name}.removed")
    shutil.rmtree(removed, ignore_errors=True)
    with suppress(FileNotFoundError):
        path.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def save_arrays(folder: Path, **arrays: np.ndarray) -> None:
    """Write arrays atomically as a folder of .npy files."""
    with atomic_folder(folder) as partial:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array)


def mapped_array(folder: Path, name: str) -> np.ndarray:
    """Return a memory-mapped array written by `save_arrays`. Pages that were read occupy memory while it exists."""
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
