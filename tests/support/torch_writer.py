"""Write files of PyTorch tensors without PyTorch: both formats, from their description, independent of the readers.

Stand-ins for PyTorch's classes are placed in `sys.modules` while `pickle` writes, which then refers to their names.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
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


class _Storage:
    def __init__(self, elements: np.ndarray) -> None:
        self.elements = elements


class _StandIn:
    def __init__(self, value: TorchTensor, storage: _Storage, rebuild: Any) -> None:
        self.state = (storage, value.offset, value.shape, value.strides, False, OrderedDict())
        self.rebuild = rebuild

    def __reduce__(self) -> tuple[Any, ...]:
        return self.rebuild, self.state


@contextmanager
def _stand_ins() -> Iterator[types.ModuleType]:
    def _rebuild_tensor_v2() -> None:
        raise AssertionError("only named")

    torch, inner = types.ModuleType("torch"), types.ModuleType("torch._utils")
    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    torch._utils, inner._rebuild_tensor_v2 = inner, _rebuild_tensor_v2  # type: ignore[attr-defined]
    for name in STORAGE_NAMES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": inner})
    try:
        yield torch
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _pickle(entries: dict[str, Any], is_stream: bool) -> tuple[bytes, list[np.ndarray]]:
    storages: dict[int, _Storage] = {}

    with _stand_ins() as torch:

        class Pickler(pickle.Pickler):
            def persistent_id(self, value: Any) -> Any:
                if not isinstance(value, _Storage):
                    return None
                key = str([id(storage) for storage in storages.values()].index(id(value)))
                kind = getattr(torch, STORAGE_NAMES[value.elements.dtype.str])
                end = (None,) if is_stream else ()
                return ("storage", kind, key, "cpu", len(value.elements), *end)

        state: dict[str, Any] = OrderedDict()
        for name, value in entries.items():
            if isinstance(value, TorchTensor):
                storage = storages.setdefault(id(value.storage), _Storage(value.storage))
                value = _StandIn(value, storage, torch._utils._rebuild_tensor_v2)
            state[name] = value
        state._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
        output = io.BytesIO()
        Pickler(output, 2).dump(state)
    return output.getvalue(), [storage.elements for storage in storages.values()]


def write_archive(path: Path, entries: dict[str, Any]) -> None:
    """Write the zip archive of PyTorch 1.6 and later."""
    data, storages = _pickle(entries, False)
    found = {"data.pkl": data, "byteorder": b"little", "version": b"3\n"}
    found |= {f"data/{key}": elements.tobytes() for key, elements in enumerate(storages)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in found.items():
            archive.writestr(f"archive/{name}", content)


def write_stream(path: Path, entries: dict[str, Any]) -> None:
    """Write the format before PyTorch 1.6: pickles, then each storage after its number of elements."""
    data, storages = _pickle(entries, True)
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    start = b"".join(pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, system))
    keys = pickle.dumps([str(key) for key in range(len(storages))], 2)
    raw = b"".join(struct.pack("<q", len(elements)) + elements.tobytes() for elements in storages)
    path.write_bytes(start + data + keys + raw)
