"""Operations that are joined into one have the bits of the same operations one by one."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import paddle
import pytest

from ernie_gram.kernels import chains, operations
from tests.support.static_programs import fresh_program

WIDTH = 12


def network(x: paddle.Tensor, lengths: paddle.Tensor, layers: int) -> list[paddle.Tensor]:
    """Return results of operations of this project and of Paddle's: within a chain, at its end, and of other shapes."""
    random = np.random.default_rng(0)

    def vector(size: int = WIDTH) -> paddle.Tensor:
        return paddle.assign(random.standard_normal(size).astype(np.float32))

    starts = paddle.concat([paddle.zeros([1], "int64"), paddle.cumsum(lengths)])
    fetched, before = [], x
    for layer in range(layers):
        (biased,) = operations.add_bias(x, vector(), in_place=False)
        (tripled,) = operations.add_bias(biased.tile([1, 1, 3]), vector(3 * WIDTH), in_place=False)
        (tripled,) = operations.add_bias(tripled, vector(3 * WIDTH), in_place=True)
        given = operations.Attending(tripled, None, None, starts, None)
        attended, _ = operations.attention(given, None, 2, 0.0)
        rows = attended.reshape([0, -1, WIDTH])
        # Of Paddle: it ends a chain.
        fetched.append(attended * 2.0)
        (gelu,) = operations.biased_gelu(rows, vector().unsqueeze([-2]), in_place=layer == 1)
        (x,) = operations.normalised_sum(gelu, vector(), before, vector(), vector(), 1e-5, in_place=True)
        before = x
    (last,) = operations.add_bias(x, vector(), in_place=False)
    view = last.reshape([-1, WIDTH])
    (summed,) = operations.add_bias(view, vector(), in_place=False)
    return [*fetched, view, summed]


def results(joins: bool, batches: list[list[int]], layers: int = 3) -> tuple[list[list[np.ndarray]], Counter[str]]:
    """Return what the network fetches for batches of sequences of some lengths, and the names of its operations."""
    with fresh_program() as (executor, main, _):
        fetches = network(paddle.static.data("x", [1, -1, WIDTH]), paddle.static.data("n", [-1], "int64"), layers)
        if joins:
            chains.join_operations(main, {value.id for value in fetches})
        found = []
        for lengths in batches:
            random = np.random.default_rng(len(lengths))
            feed = {
                "x": random.standard_normal((1, sum(lengths), WIDTH), dtype=np.float32),
                "n": np.array(lengths, np.int64),
            }
            found.append(executor.run(main, feed=feed, fetch_list=fetches))
        return found, Counter(op.name().split("_0")[0] for op in main.global_block().ops)


def test_joined_operations_have_the_same_bits_for_batches_of_any_size() -> None:
    batches = [[3, 5], [40, 1, 90, 7], [1], [3, 5]]
    (expected, plain), (found, joined) = results(False, batches), results(True, batches)
    for theirs, ours in zip(expected, found, strict=True):
        for a, b in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(a, b)
    assert (plain["py_op.compiled_add_bias"], plain["py_op.compiled_attention"]) == (11, 3)
    left = {name for name in joined if name.startswith("py_op.") and not name.startswith("py_op.compiled_chain")}
    # The first addition stands alone: Paddle's `tile` reads it.
    assert left == {"py_op.compiled_add_bias"}


def test_memory_for_results_is_kept_and_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, memory = set[int](), chains._memory

    def counted(number: int, *others: object) -> np.ndarray:
        numbers.add(number)
        found = memory(number, *others)
        assert found.ctypes.data % 64 == 0
        return found

    monkeypatch.setattr(chains, "_memory", counted)
    results(True, [[3, 5]], layers=2)
    assert 0 < len(numbers) <= 4
    results(True, [[3, 5]], layers=6)
    assert len(numbers) <= 4


def test_threads_do_not_share_memory() -> None:
    both_are_filled = Barrier(2)

    def is_kept(value: int) -> bool:
        chains._memory(0, [1000], "float32")[:] = value
        both_are_filled.wait(60)
        return bool((chains._memory(0, [1000], "float32") == value).all())

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(is_kept, range(2)))
