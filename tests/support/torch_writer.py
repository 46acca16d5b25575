"""Write files of PyTorch tensors without PyTorch, from the description of the format, independent of the reader."""

from __future__ import annotations

import pickle
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

STORAGE_NAMES = {
    code: f"{name}Storage"
    for code, name in zip(
        ("<f4", "<f2", "<f8", "<i8", "<i4", "|b1", "|u1", "<u2"),
        ("Float", "Half", "Double", "Long", "Int", "Bool", "Byte", "BFloat16"),
        strict=True,
    )
}


@dataclass
class TorchTensor:
    """A view of a storage (a flat array; uint16 stands for bfloat16), with PyTorch's arguments in elements."""

    storage: np.ndarray
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def tensor(array: np.ndarray) -> TorchTensor:
    """Return an array as a contiguous tensor with a storage of its own."""
    strides = tuple(int(np.prod(array.shape[axis + 1 :])) for axis in range(array.ndim))
    return TorchTensor(np.ascontiguousarray(array).reshape(-1), 0, array.shape, strides)


def _plain(value: Any) -> bytes:
    """Return the operations that make a value of plain types."""
    return pickle.dumps(value, 2)[2:-1]


def _pickle(entries: dict[str, Any]) -> tuple[bytes, list[np.ndarray]]:
    """Return the pickle of an OrderedDict with PyTorch's attribute `_metadata`, and the storages."""
    storages: list[np.ndarray] = []
    data = b"\x80\x02" + EMPTY + b"("
    for name, value in entries.items():
        data += _plain(name)
        if not isinstance(value, TorchTensor):
            data += _plain(value)
            continue
        key = next((i for i, storage in enumerate(storages) if storage is value.storage), len(storages))
        if key == len(storages):
            storages.append(value.storage)
        kind = f"ctorch\n{STORAGE_NAMES[value.storage.dtype.str]}\n".encode()
        reference = _plain("storage") + kind + _plain(str(key)) + _plain("cpu") + _plain(len(value.storage))
        data += b"ctorch._utils\n_rebuild_tensor_v2\n((" + reference + b"tQ"
        data += _plain(value.offset) + _plain(value.shape) + _plain(value.strides) + _plain(False) + EMPTY + b"tR"
    return data + b"u" + _plain({"_metadata": {"": {"version": 1}}}) + b"b.", storages


EMPTY = b"ccollections\nOrderedDict\n)R"


def write_archive(path: Path, entries: dict[str, Any]) -> None:
    """Write the zip archive of PyTorch 1.6 and later."""
    data, storages = _pickle(entries)
    found = {"data.pkl": data, "byteorder": b"little", "version": b"3\n"}
    found |= {f"data/{key}": elements.tobytes() for key, elements in enumerate(storages)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in found.items():
            archive.writestr(f"archive/{name}", content)
