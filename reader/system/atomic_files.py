"""Files and folders that appear whole or not at all.

Everything is written beside its final place under a hidden temporary name, flushed to disk, and then
renamed. A crash or a full disk leaves the old state, never a half-written file under the final name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from reader.errors import InputError, SystemRefusedError


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


def _refused(path: Path, error: OSError) -> SystemRefusedError:
    # numpy tells how much of an array it could write, not why.
    reason = error.strerror or f"{error} (is the disk full?)"
    return SystemRefusedError(f"{path}: could not be written: {reason}")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write; on success it becomes `path`, on any error it is removed.

    Raises SystemRefusedError if the disk refuses, InputError if a folder is in the way.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        flush_to_disk(partial)
        partial.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; on success it becomes `path`, replacing the folder that was there.

    What an earlier, killed attempt at the same folder left behind is cleared away. Raises SystemRefusedError if
    the disk refuses, InputError if a file is in the way.
    """
    partial, old = path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.old")
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file, not a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        if old.exists() and not path.exists():
            old.rename(path)  # killed between the two renames below
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        yield partial
        for file in partial.iterdir():
            flush_to_disk(file)
        flush_to_disk(partial)
        if path.exists():
            # A folder cannot be renamed onto a full one: the old one steps aside first. There may be one from an
            # earlier time that was killed before it had removed it.
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        partial.rename(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder so that a kill half-way leaves no half of it under its name."""
    old = path.with_name(f".{path.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    path.rename(old)
    shutil.rmtree(old, ignore_errors=True)


def save_arrays(folder: Path, **arrays: np.ndarray) -> None:
    """Write arrays as a folder of .npy files, whole or not at all."""
    with atomic_folder(folder) as partial:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array)


def mapped_array(folder: Path, name: str) -> np.ndarray:
    """One of the arrays of `save_arrays`, memory-mapped: what is looked at stays in memory while the array does."""
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))


def load_array(folder: Path, name: str, first: int = 0, last: int | None = None) -> np.ndarray:
    """One of the arrays of `save_arrays`, or part of it, read into memory."""
    return np.array(mapped_array(folder, name)[first:last])
