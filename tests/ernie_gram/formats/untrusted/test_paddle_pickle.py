"""Paddle's `.pdparams`, against `paddle.save` and `paddle.load`."""

from __future__ import annotations

import pickle
import pickletools
import warnings
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.formats.untrusted.paddle_files import write_pdparams
from ernie_gram.formats.untrusted.reading import read_arrays
from reader.errors import InputError

pytestmark = pytest.mark.usefixtures("dynamic_mode")

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # in the file in Fortran order
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 4), np.float32),
    "ids": np.arange(5),
    "bytes": np.arange(3, dtype=np.uint8),
    "flags": np.array([True, False]),
    "词": np.array([1.5], np.float32),
}


def assert_equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_the_state_of_a_layer_and_tensors_of_every_type_are_read(tmp_path: Path, protocol: int) -> None:
    layer, path = paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.LayerNorm(2)), tmp_path / "a.pdparams"
    paddle.save(layer.state_dict(), str(path), protocol=protocol)
    assert_equal(read_arrays(path), {name: value.numpy() for name, value in layer.state_dict().items()})
    values = np.array([1.0, -2.5, 0.15625], np.float32)
    tensors = {kind: paddle.to_tensor(values).astype(kind) for kind in ("float32", "float16", "bfloat16", "float64")}
    paddle.save({**tensors, "array": ARRAYS["ids"]}, str(path), protocol=protocol)
    assert_equal(read_arrays(path), {**dict.fromkeys(tensors, values), "array": ARRAYS["ids"]})


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numpy_arrays_pickled_by_python_are_read(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps({**ARRAYS, "number": np.float32(3)}, protocol))
    assert_equal(read_arrays(tmp_path / "a.pdparams"), {**ARRAYS, "number": np.array(3, np.float32)})


def test_arrays_in_slices_are_refused_with_the_way_out(tmp_path: Path) -> None:
    entries = {"w@@.0": ARRAYS["ids"], "UnpackBigParamInfor@@": {"w": {"OriginShape": (5,), "slices": ["w@@.0"]}}}
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(entries, 2))
    with pytest.raises(InputError, match=r"in slices; save it again with paddle\.save\(\.\.\., protocol=4\)"):
        read_arrays(tmp_path / "a.pdparams")


def test_entries_that_are_no_arrays_are_left_out(tmp_path: Path) -> None:
    entries = {"a": ARRAYS["ids"], "epoch": 3, "history": [1, 2]}
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(entries, 4))
    assert read_arrays(tmp_path / "a.pdparams").keys() == {"a"}
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps({"epoch": 3}, 4))
    with pytest.raises(InputError, match="holds no arrays"):
        read_arrays(tmp_path / "a.pdparams")


def test_paddle_python_and_we_read_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.pdparams"
    write_pdparams(path, ARRAYS)
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("error")
        assert_equal(pickle.load(file), ARRAYS)
    assert_equal({name: np.asarray(array) for name, array in paddle.load(str(path), return_numpy=True).items()}, ARRAYS)
    assert_equal(read_arrays(path), ARRAYS)
    layer = paddle.nn.Linear(2, 3)
    write_pdparams(path, {"weight": ARRAYS["matrix"], "bias": np.ones(3, np.float32)})
    assert layer.set_state_dict(paddle.load(str(path))) == ([], [])
    np.testing.assert_array_equal(layer.weight.numpy(), ARRAYS["matrix"])


def test_what_is_written_names_only_what_every_numpy_has(tmp_path: Path) -> None:
    write_pdparams(tmp_path / "a.pdparams", ARRAYS)
    operations = list(pickletools.genops((tmp_path / "a.pdparams").read_bytes()))
    assert operations[0][1] == 4
    texts = {argument for _, argument, _ in operations if isinstance(argument, str) and "numpy" in argument}
    assert texts == {"numpy.core.multiarray _reconstruct", "numpy"}
