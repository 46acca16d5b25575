"""Compiled functions that Numba reads from its cache, against the same functions just after they were compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from ernie_gram.kernels import attention, blas, compiled, rows
from tests.support.commands import python

# Prints a digest of the results of all functions with sums; alignment, on which MKL's order of additions depends, is
# the same in each process.
SCRIPT = """
import sys
from hashlib import blake2b
from pathlib import Path
import numpy as np
from ernie_gram.kernels import attention, blas, compiled, rows

assert blas.is_available()
random, key, rate = np.random.default_rng(1), np.array([3, 4], np.int32), (6554, np.float32(1 / 0.9))

def memory(*shape, dtype=np.float32):
    room = np.zeros(int(np.prod(shape)) * 4 + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][: int(np.prod(shape)) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)

def numbers(*shape):
    made = memory(*shape)
    made[:] = random.standard_normal(shape)
    return made

context, bias, starts = numbers(221, 3, 2, 32), numbers(2, 150, 150), np.array([0, 150, 221])
attended = []
for own, self_bias, slots in [(context, numbers(0), np.arange(0)), (numbers(60, 3, 2, 32), numbers(2), np.arange(60))]:
    out, log_sums = memory(len(own), 2, 32), memory(len(own), 2)
    gradients = [memory(*each.shape) for each in (context, own, bias, self_bias)]
    if own is context:
        gradients[1] = gradients[0]
    given = context, own, bias, self_bias, starts, slots, key, *rate, np.float32(0.2), 150, out, log_sums
    attention.attention(*given)
    attention.attention_backward(*given, numbers(*out.shape), *gradients)
    attended += [out, log_sums, *gradients]
x, others, vectors = numbers(150, 72), [memory(150, 72) for _ in range(6)], [numbers(72) for _ in range(6)]
norm, dropout = np.float32(1e-5), (key, *rate)
rows.normalised_sum(x, vectors[0], numbers(150, 72), *vectors[1:3], norm, *dropout, *others[:2])
rows.normalised_sum_backward(others[0], vectors[1], x, norm, *dropout, *others[2:4], *vectors[3:])
rows.biased_gelu(x, vectors[0], others[4])
rows.biased_gelu_backward(x, vectors[0], x, others[5])
results = *others, *attended, *vectors[3:]
Path(sys.argv[1]).write_text("\\n".join(blake2b(each.tobytes(), digest_size=8).hexdigest() for each in results))
"""


def test_compiled_and_cached_code_give_the_same_bits(tmp_path: Path) -> None:
    if not blas.is_available():
        pytest.skip("no MKL in this Paddle")
    found = []
    for process in range(2):
        cached = list(tmp_path.rglob("*.nbc"))
        assert bool(cached) == bool(process)
        to = tmp_path / f"{process}.txt"
        python("-c", SCRIPT, str(to), NUMBA_CACHE_DIR=str(tmp_path / "cache")).ok()
        found.append(to.read_text().split())
    assert len(found[0]) == 21
    assert found[0] == found[1]


def test_no_function_lets_the_compiler_change_the_order_of_additions() -> None:
    functions = [each for part in (attention, rows, blas, compiled) for each in vars(part).values()]
    options = [each.targetoptions for each in functions if hasattr(each, "targetoptions")]
    assert len(options) > 15
    assert not any(each.get("fastmath") for each in options)
