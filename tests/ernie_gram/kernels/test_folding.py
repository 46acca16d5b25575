"""What a program computes of its parameters alone is computed once, and gives the same numbers."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from ernie_gram.distributed.processor import mkl
from ernie_gram.inference.forward import Forward
from ernie_gram.kernels import blas
from ernie_gram.training.program import Program, open_program
from reader.batches.fields import Field
from tests.support.static_programs import fresh_scope

import paddle  # isort: skip

SIZES = {"a": 30, "b": 50, "c": 80, "d": 8}
X = Field("x", "BL", "float32", "rows")


@pytest.mark.parametrize("advice", [getattr(blas.mmap, "MADV_HUGEPAGE", None), 12345, None])
def test_a_packed_matrix_multiplies_any_number_of_rows(advice: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the system has no large pages, or Python does not know them."""
    if not (blas.is_available() and hasattr(mkl(), "cblas_sgemm_pack_get_size")):
        pytest.skip("Paddle's package brings no library that packs")
    monkeypatch.setattr(blas.mmap, "MADV_HUGEPAGE", advice, raising=False)
    if advice is None:
        monkeypatch.delattr(blas.mmap, "MADV_HUGEPAGE")
    assert blas.can_pack.__wrapped__()
    random = np.random.default_rng(2)
    for k, n in ((40, 64), (64, 41), (300, 520)):
        matrix = random.standard_normal((k, n)).astype(np.float32)
        packed = blas.pack(matrix)
        for count in (1, 2, 31, 32, 33, 400):
            rows, out = random.standard_normal((count, k)).astype(np.float32), np.empty((count, n), np.float32)
            blas.packed_product(rows, packed, out)
            np.testing.assert_allclose(out, rows @ matrix, atol=1e-3)


def build() -> Program:
    """Return x joined(a, b) + x joined(a, b) + x c, with a small matrix besides."""
    with open_program([X], portable=True) as opened:
        x = opened.feeds["x"]
        layer = paddle.create_parameter
        a, b, c, d = (layer([40, width], "float32", name, paddle.ParamAttr(name=name)) for name, width in SIZES.items())
        twice = paddle.matmul(x, paddle.concat([a, b], 1)) + paddle.matmul(x, paddle.concat([a, b], 1))
        found = twice + paddle.matmul(x, c)
        return opened.finish({"sum": found, "small": paddle.matmul(x, d)})


@pytest.mark.parametrize("packs", [True, False])
def test_joined_and_packed_parameters_give_the_same_numbers(packs: bool) -> None:
    random, read = np.random.default_rng(4), []

    def built(names: tuple[str, ...], _: str) -> Program:
        read.append(build())
        return read[-1]

    with fresh_scope() as executor, patch.object(blas, "can_pack", return_value=packs and blas.can_pack()):
        arrays = {name: random.standard_normal((40, n)).astype(np.float32) for name, n in SIZES.items()}
        x = random.standard_normal((5, 40)).astype(np.float32)
        with patch.dict("ernie_gram.inference.forward.FIELDS", {"x": X}):
            found = Forward(built, arrays, "test", executor.place).run({"x": x}, ["sum", "small"])
    joined = np.concatenate([arrays["a"], arrays["b"]], 1)
    np.testing.assert_allclose(found["sum"], x @ (2 * joined + arrays["c"]), atol=1e-4)
    np.testing.assert_allclose(found["small"], x @ arrays["d"], atol=1e-4)
    names = {parameter.name for parameter in read[0].main.global_block().all_parameters()}
    packed = packs and blas.can_pack()
    assert names == ({"packed(joined(a, b))", "packed(c)", "d"} if packed else {"joined(a, b)", "c", "d"})
