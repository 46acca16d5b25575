"""Files of PyTorch tensors, and archives that are not what they seem."""

from __future__ import annotations

import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.formats.untrusted.reading import read_arrays
from reader.errors import InputError
from tests.ernie_gram.formats.untrusted.test_paddle_files import ARRAYS, assert_equal
from tests.support.torch_writer import TorchTensor, tensor, write_archive

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
FLAT = np.arange(12, dtype=np.float32)
OTHERS = {name: ARRAYS[name] for name in ("scalar", "empty", "ids", "flags")}


def test_tensors_are_read(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    tied = tensor(MATRIX)
    entries = {
        "embeddings.weight": tied,
        "decoder.weight": TorchTensor(tied.storage, 0, (3, 4), (4, 1)),
        "transposed": TorchTensor(FLAT, 0, (4, 3), (1, 4)),
        "slice": TorchTensor(FLAT, 5, (2, 2), (4, 2)),
        "expanded": TorchTensor(FLAT, 0, (1, 12), (0, 1)),
        **{name: tensor(array) for name, array in OTHERS.items()},
    }
    write_archive(path, entries)
    stored = read_arrays(path)
    expected = {
        "embeddings.weight": MATRIX,
        "decoder.weight": MATRIX,
        "transposed": MATRIX.T,
        "slice": np.array([[5, 7], [9, 11]], np.float32),
        "expanded": FLAT.reshape(1, 12),
        **OTHERS,
    }
    assert_equal(stored, expected)
    assert all(array.flags.c_contiguous for array in stored.values())


def test_half_precision_is_read_and_other_entries_are_left_out(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 0.15625], np.float32)
    bfloat16 = (values.view(np.uint32) >> 16).astype(np.uint16)
    write_archive(tmp_path / "a.bin", {"h": tensor(values.astype("<f2")), "b": tensor(bfloat16), "step": 7})
    stored = read_arrays(tmp_path / "a.bin")
    np.testing.assert_equal(stored, {"h": values, "b": values})


VIEWS = {
    "offset beyond": TorchTensor(FLAT, 9, (2, 2), (2, 1)),
    "stride beyond": TorchTensor(FLAT, 0, (3, 4), (5, 1)),
    "huge stride": TorchTensor(FLAT, 0, (2, 2), (2**50, 2**5)),
    "stride of an overflow": TorchTensor(FLAT, 0, (5,), (2**60,)),
    "repeats elements": TorchTensor(FLAT, 0, (2**40,), (0,)),
    "negative offset": TorchTensor(FLAT, -1, (2,), (1,)),
    "negative size": TorchTensor(FLAT, 0, (-2, -2), (1, 1)),
    "negative stride": TorchTensor(FLAT, 11, (12,), (-1,)),
    "more sizes than strides": TorchTensor(FLAT, 0, (2, 2), (1,)),
    "overflow": TorchTensor(FLAT, 0, (2**32, 2**32, 2**32), (0, 0, 0)),
    "fractional offset": TorchTensor(FLAT, 0.5, (1,), (1,)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", VIEWS)
def test_a_view_beyond_its_storage_is_refused(tmp_path: Path, case: str) -> None:
    write_archive(tmp_path / "a.bin", {"good": tensor(MATRIX), "bad": VIEWS[case]})
    reason = r"a\.bin: (a tensor (reaches beyond the 12 elements of its storage|without)|the shape .* is not a list)"
    with pytest.raises(InputError, match=reason):
        read_arrays(tmp_path / "a.bin")


MEMBERS: dict[str, tuple[dict[str, bytes | None], str]] = {
    "big-endian": ({"archive/byteorder": b"big"}, "not in little-endian byte order"),
    "short storage": ({"archive/data/0": b"abc"}, "does not have the 12 elements"),
    "long storage": ({"archive/data/0": bytes(52)}, "does not have the 12 elements"),
    "no storage": ({"archive/data/0": None}, "storage '0' is missing"),
    "no tensors": ({"archive/data.pkl": pickle.dumps([1, 2])}, "holds a list"),
    "cut pickle": ({"archive/data.pkl": b"\x80\x02}"}, "truncated"),
    "attack": ({"archive/data.pkl": b"\x80\x02cos\nsystem\n" + b"X\x04\x00\x00\x00true\x85R."}, "'os.system'"),
    "no pickle": ({"archive/data.pkl": None}, "no single NAME/data.pkl"),
    "two pickles": ({"other/data.pkl": b"x"}, "no single NAME/data.pkl"),
}


def change_members(path: Path, changes: dict[str, bytes | None], compression: int = zipfile.ZIP_STORED) -> None:
    """Write an archive anew with other members; None removes one."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            if data is not None:
                archive.writestr(name, data)


@pytest.mark.parametrize(("changes", "message"), MEMBERS.values(), ids=MEMBERS)
def test_an_archive_with_other_members_is_refused(
    tmp_path: Path, changes: dict[str, bytes | None], message: str
) -> None:
    write_archive(tmp_path / "a.bin", {"w": tensor(MATRIX)})
    change_members(tmp_path / "a.bin", changes)
    with pytest.raises(InputError, match=message):
        read_arrays(tmp_path / "a.bin")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_a_compressed_archive_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_archive(path, {"w": tensor(MATRIX)})
    change_members(path, {"archive/data/0": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="compressed members, which PyTorch never writes"):
        read_arrays(path)


def test_members_that_claim_more_than_the_file_are_refused(tmp_path: Path) -> None:
    """The central directory of a bomb may claim that a stored member is large, or that members overlap."""
    path = tmp_path / "a.bin"
    write_archive(path, {"w": tensor(MATRIX)})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 20 : entry + 28] = struct.pack("<II", 2**31, 2**31)  # compressed and plain size of the first member
    path.write_bytes(data)
    with pytest.raises(InputError, match="members claim more bytes than"):
        read_arrays(path)


def test_a_flipped_bit_in_a_storage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_archive(path, {"w": tensor(MATRIX)})
    data = bytearray(path.read_bytes())
    data[data.index(MATRIX.tobytes()) + 7] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="CRC"):
        read_arrays(path)


def test_a_file_of_pytorch_before_1_6_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2))
    with pytest.raises(InputError, match=r"a\.bin: .* torch\.save\(torch\.load"):
        read_arrays(tmp_path / "a.bin")
