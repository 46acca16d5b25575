"""Casts of a program, of which each is made once."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from ernie_gram import graph
from ernie_gram.graph import computing, for_product, up_to_multiple
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
