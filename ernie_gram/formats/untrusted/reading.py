"""Read the arrays of a file of any known format, chosen by the file's content. Nothing that a file names is run."""

from __future__ import annotations

import mmap
import pickle
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ernie_gram.formats.untrusted.arrays import checked_arrays, read_safetensors
from ernie_gram.formats.untrusted.paddle_files import is_paddle_variable, read_paddle_variable
from ernie_gram.formats.untrusted.pickles import ArrayUnpickler
from ernie_gram.formats.untrusted.torch_file import OLD_START, ZIP_START, read_torch_archive
from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError

LFS_POINTER = b"version https://git-lfs"
# What the readers raise for damaged files beside ValueError, for which they have words; those of `zipfile` included.
DAMAGED = (
    *(zipfile.BadZipFile, pickle.UnpicklingError, TypeError, LookupError, RuntimeError, OverflowError),
    *(AttributeError, EOFError, OSError, struct.error),
)


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a file, floating-point numbers as float32.

    Formats: safetensors; Paddle's `.pdparams` and one-variable file (the name of the array is the name of the file), or
    a folder of these; PyTorch's `.bin` of tensors.
    Raises InputError, one line that names the file and the array, for a file of another format, a damaged or truncated
    file, and a file that asks for more than arrays. Nothing of such a file is run.
    """
    if path.is_dir():
        found, size = _read_folder(path)
    else:
        found, size = _read_file(path, _mapped(path)), path.stat().st_size
    return checked_arrays(path, found, size)


def _mapped(path: Path) -> mmap.mmap:
    """Return the bytes of a file, memory-mapped, so that checks precede reading; closed when its views are gone.

    A file that another process makes shorter meanwhile ends this process, as with every memory-mapped file.
    """
    if not path.is_file():
        raise InputError(f"{path}: {'is not a regular file' if path.exists() else 'no such file'}")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: is empty")
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Raise errors of a damaged file as InputError that names it."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    except DAMAGED as error:
        raise InputError(f"{path}: damaged: {str(error) or 'truncated'}") from error


def _read_file(path: Path, data: mmap.mmap) -> Arrays:
    start = data[:64]
    with _named(path):
        # A header of 640 bytes begins like a pickle, so the safetensors format comes first.
        if start[8:9] == b"{":
            return read_safetensors(path, memoryview(data))
        if start.startswith(ZIP_START):
            return read_torch_archive(path)
        if start.startswith(OLD_START):
            raise ValueError("PyTorch before 1.6 wrote it; write it again: torch.save(torch.load(FILE), FILE)")
        # The operation PROTO, with which all but the oldest pickles begin.
        if start[0] == 0x80 or path.suffix == ".pdparams":
            return ArrayUnpickler(data).arrays()
        if is_paddle_variable(start):
            return {path.name: read_paddle_variable(memoryview(data))}
    if start.startswith(LFS_POINTER):
        raise InputError(f"{path}: is a pointer to a file in Git LFS; fetch the file itself with 'git lfs pull'")
    raise InputError(
        f"{path}: is not a safetensors file, a .pdparams or variable of Paddle, or a file of PyTorch tensors; "
        "it may be damaged or not downloaded completely"
    )


def _read_folder(folder: Path) -> tuple[Arrays, int]:
    """Return the arrays of a folder with one Paddle variable per file (upstream's `params/`), and their total size."""
    arrays: Arrays = {}
    size = 0
    for path in sorted(folder.iterdir()):
        with _mapped(path) as mapped:
            data = mapped[:]  # a copy, because a folder may have more files than a process may keep mapped
        with _named(path):
            arrays[path.name] = read_paddle_variable(memoryview(data))
        size += len(data)
    return arrays, size
