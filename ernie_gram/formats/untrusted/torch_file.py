"""PyTorch's `.bin` and `.pt` files of tensors: the zip archive of version 1.6 and later.

It holds a pickle in which a tensor is a view (offset, shape, strides) of a storage, and the storages uncompressed, as
members `NAME/data/KEY`.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.formats.untrusted.arrays import TYPES, checked_sizes
from ernie_gram.formats.untrusted.pickles import ArrayUnpickler
from ernie_gram.run.checkpoint import Arrays
from reader.errors import quoted

STORAGES = {
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "DoubleStorage": "float64",
    "BoolStorage": "bool",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "ByteStorage": "uint8",
}

ZIP_START = b"PK\x03\x04"
DATA = "/data.pkl"
# Of files before version 1.6, a stream of pickles.
OLD_START = b"\x80\x02\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little")


def read_torch_archive(path: Path) -> Arrays:
    """Return the tensors of PyTorch's zip archive, without entries of the dict that are no tensors.

    Raises ValueError or another error of `zipfile` for compressed members, sizes beyond the file, a pickle that refers
    to anything but tensors and plain containers, views beyond their storage, and damage (the archive has checksums).
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if any(info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size for info in members):
            raise ValueError("has compressed members, which PyTorch never writes")
        if sum(info.file_size for info in members) > path.stat().st_size:
            raise ValueError("its members claim more bytes than the file has (truncated or overlapping)")
        names = archive.namelist()
        folders = [name.removesuffix(DATA) for name in names if name.endswith(DATA)]
        if len(folders) != 1:
            raise ValueError(f"is not an archive of tensors; it has no single NAME{DATA}")
        if f"{folders[0]}/byteorder" in names and archive.read(f"{folders[0]}/byteorder") != b"little":
            raise ValueError("its arrays are not in little-endian byte order")

        @cache
        def bytes_of(key: str) -> bytes:
            if f"{folders[0]}/data/{key}" not in names:
                raise ValueError(f"the storage {quoted(key)} is missing")
            return archive.read(f"{folders[0]}/data/{key}")

        pickled = BytesIO(archive.read(folders[0] + DATA))
        return ArrayUnpickler(pickled, NAMES, partial(_storage, bytes_of)).arrays()


def _storage(bytes_of: Callable[[str], bytes], reference: Any) -> np.ndarray:
    """Return the elements, [N], of a persistent ID ("storage", type, key, device, number of elements)."""
    match reference:
        case ("storage", np.dtype() as dtype, str(key), _, int(size)) if size >= 0:
            if len(data := bytes_of(key)) != size * dtype.itemsize:
                raise ValueError(f"the storage {quoted(key)} does not have the {size:,} elements that a tensor claims")
            return np.frombuffer(data, dtype)
    raise ValueError("a reference to a storage is damaged")


def _tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> np.ndarray:
    """Return a view of a storage, `offset` and `strides` in elements, that does not reach beyond it."""
    sizes, steps = checked_sizes(shape), checked_sizes(strides)
    if not isinstance(storage, np.ndarray) or type(offset) is not int or offset < 0 or len(sizes) != len(steps):
        raise ValueError("a tensor without a storage or offset, or with more sizes than strides")
    count, size = math.prod(sizes), storage.itemsize
    last = offset + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if count > len(storage) or (count and last >= len(storage)):
        raise ValueError(f"a tensor reaches beyond the {len(storage):,} elements of its storage, or repeats them")
    if not count:
        return np.empty(sizes, storage.dtype)
    return np.ndarray(sizes, storage.dtype, storage, offset * size, [step * size for step in steps])


NAMES = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": lambda tensor, requires_grad, hooks: tensor,
    **{f"torch.{name}": TYPES[stored_as] for name, stored_as in STORAGES.items()},
}
