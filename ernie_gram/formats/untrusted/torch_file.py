"""PyTorch's `.bin` and `.pt` files of tensors: the zip archive of version 1.6 and later, and the stream before it.

Both hold a pickle in which a tensor is a view (offset, shape, strides) of a storage. The zip archive stores
the storages uncompressed, as members `NAME/data/KEY`; the stream appends them to the pickle.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.untrusted.arrays import (
    NUMPY_TYPES,
    RawArray,
    RawArrays,
    checked_shape,
    checked_sizes,
    one_line,
    quoted,
)
from ernie_gram.formats.untrusted.pickle_machine import Global, Machine
from ernie_gram.formats.untrusted.pickled_arrays import array_globals
from reader.errors import InputError

STORAGES = {
    "torch FloatStorage": "float32",
    "torch HalfStorage": "float16",
    "torch BFloat16Storage": "bfloat16",
    "torch DoubleStorage": "float64",
    "torch BoolStorage": "bool",
    "torch CharStorage": "int8",
    "torch ShortStorage": "int16",
    "torch IntStorage": "int32",
    "torch LongStorage": "int64",
    "torch ByteStorage": "uint8",
}

ZIP_START = b"PK\x03\x04"
# Members of the archive below its one top folder.
MEMBER = re.compile(
    r"data\.pkl|data/[0-9]+|byteorder|version|\.data/serialization_id|\.format_version|\.storage_alignment"
)

MAGIC = 0x1950A86A20F9469CFC6C
STREAM_START = b"\x80\x02\x8a\x0a" + MAGIC.to_bytes(10, "little")
STREAM_VERSION = 1001

# What zipfile raises for damaged archives.
ZIP_ERRORS = (zipfile.BadZipFile, ValueError, LookupError, RuntimeError, OverflowError, EOFError, OSError, struct.error)


@dataclass(frozen=True)
class Storage:
    """A reference to a storage: its element type, its key in the file, and its number of elements."""

    stored_as: str
    key: str
    size: int


@dataclass(frozen=True)
class Tensor:
    """A view of a storage: `offset` and `strides` in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_archive(path: Path) -> RawArrays:
    """Return the tensors of PyTorch's zip archive; entries of the dict that are no tensors are named in the notes.

    Raises InputError for members with unexpected names, compressed members, sizes beyond the file, a pickle that refers
    to anything but tensors and plain containers, views beyond their storage, and damage (the archive has checksums).
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path.stat().st_size)
            if "byteorder" in members and archive.read(members["byteorder"]) != b"little":
                raise ValueError("its arrays are not in little-endian byte order")
            pickle = BytesIO(archive.read(members["data.pkl"]))
            tensors = _machine(path.stat().st_size).load(pickle)
            keys = sorted({tensor.storage.key for tensor in _values(tensors).values() if isinstance(tensor, Tensor)})
            missing = next((key for key in keys if f"data/{key}" not in members), None)
            if missing is not None:
                raise ValueError(f"the storage {quoted(missing)} is missing")
            storages = {key: memoryview(archive.read(members[f"data/{key}"])) for key in keys}
            return _views(path, tensors, storages)
    except ZIP_ERRORS as error:
        raise InputError(f"{path}: {one_line(error)}") from error


def _members(archive: zipfile.ZipFile, file_size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by their name below the top folder; raises ValueError unless they have PyTorch's layout."""
    members: dict[str, zipfile.ZipInfo] = {}
    top_folders = set()
    for info in archive.infolist():
        top, _, name = info.filename.partition("/")
        top_folders.add(top)
        if not MEMBER.fullmatch(name) or top in ("", ".", "..") or not top.isprintable() or name in members:
            raise ValueError(f"the member {quoted(info.filename)} does not belong in an archive of tensors")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"the member {quoted(info.filename)} is compressed, which PyTorch never does")
        members[name] = info
    if len(top_folders) != 1 or "data.pkl" not in members:
        raise ValueError("is not an archive of tensors; it has no single NAME/data.pkl")
    if sum(info.file_size for info in members.values()) > file_size:
        raise ValueError(f"the members claim more than the {file_size:,} bytes of the file (truncated or overlapping)")
    return members


def is_torch_stream(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of PyTorch's format before version 1.6."""
    return start.startswith(STREAM_START)


def read_torch_stream(path: Path, data: mmap) -> RawArrays:
    """Return the tensors of PyTorch's format before version 1.6; raises InputError as `read_torch_archive` does.

    The file is a sequence of pickles: a magic number, a version, the machine, the tensors, the keys of the storages.
    The storages follow in the order of the keys, each with its number of elements as a 64-bit integer.
    """
    try:
        machine = _machine(len(data))
        magic, version, system = machine.load(data), machine.load(data), machine.load(data)
        if magic != MAGIC or version != STREAM_VERSION:
            raise ValueError(f"version {quoted(version)} of PyTorch's format is unknown")
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise ValueError("its arrays are not in little-endian byte order")
        tensors = machine.load(data)
        keys = machine.load(data)
        if not isinstance(keys, list) or any(not isinstance(key, str) for key in keys):
            raise ValueError("the list of storages is damaged")
        types = {value.storage.key: value.storage for value in _values(tensors).values() if isinstance(value, Tensor)}
        return _views(path, tensors, _storages_of_stream(memoryview(data), data.tell(), keys, types))
    except ValueError as error:
        raise InputError(f"{path}: {one_line(error)}") from error


def _storages_of_stream(
    data: memoryview, offset: int, keys: list[str], types: Mapping[str, Storage]
) -> dict[str, memoryview]:
    storages = {}
    for key in keys:
        if key not in types:
            raise ValueError(f"the storage {quoted(key)} belongs to no tensor, so its size is unknown")
        size = int.from_bytes(data[offset : offset + 8], "little") * NUMPY_TYPES[types[key].stored_as].itemsize
        if offset + 8 + size > len(data):
            raise ValueError(f"truncated; the storage {quoted(key)} ends after the end of the file")
        storages[key] = data[offset + 8 : offset + 8 + size]
        offset += 8 + size
    return storages


def _machine(file_size: int) -> Machine:
    names = {
        "torch._utils _rebuild_tensor_v2": _rebuild_tensor,
        "torch._utils _rebuild_parameter": _rebuild_parameter,
        **dict.fromkeys(STORAGES),
    }
    tensor_globals = {name: Global(name, make) for name, make in names.items()}
    return Machine({**array_globals(file_size), **tensor_globals}, _storage)


def _storage(reference: Any) -> Storage:
    """Return the storage of a persistent ID ("storage", type, key, device, number of elements, None)."""
    if not isinstance(reference, tuple) or len(reference) not in (5, 6) or reference[0] != "storage":
        raise ValueError(f"{quoted(type(reference).__name__)} is not a reference to a storage")
    kind, key, size = reference[1], reference[2], reference[4]
    if not isinstance(kind, Global) or kind.name not in STORAGES or not isinstance(key, str):
        raise ValueError("a storage of an unknown type")
    if type(size) is not int or size < 0 or reference[5:] not in ((), (None,)):
        raise ValueError(f"the storage {quoted(key)} is damaged, or a view of another storage")
    return Storage(STORAGES[kind.name], key, size)


def _rebuild_tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> Tensor:
    if not isinstance(storage, Storage) or type(offset) is not int or offset < 0:
        raise ValueError("a tensor without a storage or offset")
    sizes, steps = checked_shape(shape), checked_sizes(strides)
    if len(sizes) != len(steps):
        raise ValueError("a tensor with more sizes than strides, or fewer")
    return Tensor(storage, offset, sizes, steps)


def _rebuild_parameter(tensor: Any, requires_grad: Any, hooks: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise ValueError("a parameter without a tensor")
    return tensor


def _values(tensors: Any) -> dict[str, Any]:
    if not isinstance(tensors, dict):
        raise ValueError(f"holds a {type(tensors).__name__}, not a dict of names and tensors")
    return tensors


def _views(path: Path, tensors: dict[str, Any], storages: Mapping[str, memoryview]) -> RawArrays:
    arrays, notes = {}, []
    for name, value in tensors.items():
        if isinstance(value, Tensor):
            arrays[name] = _view(name, value, storages)
        else:
            notes.append(f"{path.name}: {quoted(name)} has type {type(value).__name__}, it is not a tensor; left out")
    return RawArrays(arrays, tuple(notes))


def _view(name: str, tensor: Tensor, storages: Mapping[str, memoryview]) -> RawArray:
    """Return a tensor as a view of its storage; raises ValueError if it reaches beyond it or repeats elements."""
    storage, element = tensor.storage, NUMPY_TYPES[tensor.storage.stored_as]
    if storage.key not in storages or len(storages[storage.key]) != storage.size * element.itemsize:
        raise ValueError(f"the storage of {quoted(name)} has not the {storage.size:,} elements that its tensors claim")
    count = math.prod(tensor.shape)
    last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True))
    if count > storage.size or (count and last >= storage.size):
        raise ValueError(f"{quoted(name)} reaches beyond the {storage.size:,} elements of its storage, or repeats them")
    if not count:
        return RawArray(np.empty(tensor.shape, element), storage.stored_as)
    elements = np.frombuffer(storages[storage.key], element)[tensor.offset :]
    steps = [step * element.itemsize for step in tensor.strides]
    return RawArray(np.lib.stride_tricks.as_strided(elements, tensor.shape, steps, writeable=False), storage.stored_as)
