"""Casts of a program, of which each is made once, and gradients that need no copy; results do not change."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from ernie_gram import graph
from ernie_gram.graph import (
    computing,
    for_product,
    skip_gradients_of_additions,
    up_to_multiple,
)
from ernie_gram.training.program import open_program
from tests.support.static_programs import fresh_program, fresh_scope


def names(program: paddle.static.Program) -> list[str]:
    return [operation.name() for operation in program.global_block().ops]


def test_a_value_is_cast_once_in_half_precision_and_not_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "on_cpu", lambda: False)
    for precision, casts in (("bfloat16", 2), ("float32", 0)):
        with fresh_scope(), open_program([]) as opened, computing(precision):
            x, y = paddle.ones([2]), paddle.ones([2])
            first, again, other = for_product(x), for_product(x), for_product(y)
            assert names(opened.main).count("pd_op.cast") == casts
            assert first.id == again.id != other.id
            assert str(first.dtype).endswith(precision)
        # Another program has casts of its own.
        with open_program([]) as opened, computing(precision):
            for_product(paddle.ones([2]))
            assert names(opened.main).count("pd_op.cast") == casts // 2


def test_a_size_is_filled_up_to_a_multiple() -> None:
    with fresh_program() as (executor, main, _):
        x = paddle.static.data("x", [None])
        missing = up_to_multiple(paddle.shape(x)[0], 4)
        found = [executor.run(main, {"x": np.zeros(n, np.float32)}, [missing])[0].tolist() for n in (1, 2, 4, 7, 8)]
    assert found == [3, 2, 0, 1, 0]


def test_gradients_of_additions_are_not_copied_unless_they_broadcast_or_are_fetched() -> None:
    random = np.random.default_rng(1)
    feed = {
        name: random.standard_normal(shape, np.float32) for name, shape in (("x", (2, 3)), ("y", (2, 3)), ("z", (3,)))
    }

    def gradients(skips: bool, fetches_copy: bool) -> tuple[list[np.ndarray], int]:
        with fresh_program() as (executor, main, _):
            x, y, z = (paddle.static.data(name, [-1] * (value.ndim - 1) + [3]) for name, value in feed.items())
            for each in (x, y, z):
                each.stop_gradient = False
            scaled = [each * 2.0 for each in (x, y, z)]
            total = ((scaled[0] + scaled[1] + scaled[2]) ** 2).sum()
            inputs = [scaled[1], x, z] if fetches_copy else [x, y, z]
            found = paddle.static.gradients([total], inputs)
            if skips:
                skip_gradients_of_additions(main, found)
            return executor.run(main, feed=feed, fetch_list=found), names(main).count("pd_op.add_grad")

    for fetches_copy, left in ((False, 1), (True, 2)):
        (expected, before), (found, after) = (gradients(skips, fetches_copy) for skips in (False, True))
        assert (before, after) == (2, left)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_gradient_that_is_changed_in_place_is_copied() -> None:
    with fresh_program() as (executor, main, _):
        x, y = (paddle.static.data(name, [3]) for name in "xy")
        x.stop_gradient = y.stop_gradient = False
        first, second = paddle.static.gradients([((x + y) ** 2).sum()], [x, y])
        changed = paddle._C_ops.scale_(first, 2.0, 0.0, True)
        fetches = [changed * 1.0, second * 1.0]
        skip_gradients_of_additions(main, fetches)
        one = np.ones(3, np.float32)
        doubled, plain = executor.run(main, feed={"x": one, "y": one}, fetch_list=fetches)
    assert doubled.tolist() == [8.0] * 3
    assert plain.tolist() == [4.0] * 3
