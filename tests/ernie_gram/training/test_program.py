"""Programs: what is prepared for their runs."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from ernie_gram.paddle_private import add_, persistable, prepared_run
from reader.batches.fields import LENGTHS, Batch
from tests.support.static_programs import fresh_program, fresh_scope

import paddle  # isort: skip
from paddle.nn.initializer import Constant  # isort: skip

from ernie_gram.training import program as program_module  # isort: skip
from ernie_gram.training.program import Program, open_program  # isort: skip


def _scaled_lengths() -> Program:
    """Return a program that multiplies the lengths by a variable of the scope."""
    with open_program([LENGTHS]) as opened:
        factor = persistable("factor", [1], Constant(2.0))
        lengths = opened.feeds[LENGTHS.name].astype("float32")
        return opened.finish({"scaled": lengths * factor, "sum": lengths.sum()})


def test_a_program_is_prepared_once_for_each_scope_and_what_is_fetched() -> None:
    batches: list[Batch] = [{LENGTHS.name: np.arange(1, n, dtype=np.int64)} for n in (3, 5)]
    with patch.object(program_module, "prepared_run", wraps=prepared_run) as prepared, fresh_scope() as executor:
        program = _scaled_lengths()
        executor.run(program.startup)
        first = [program.run(executor, batch) for batch in batches]
        for batch in batches:
            program.step(executor, batch)
        with fresh_scope():
            executor.run(program.startup)
            paddle.static.global_scope().find_var("factor").get_tensor().set(
                np.full(1, 3.0, np.float32), executor.place
            )
            second = [program.run(executor, batch) for batch in batches]
        again = program.run(executor, batches[0])
    assert [found["scaled"].tolist() for found in first] == [[2, 4], [2, 4, 6, 8]]
    assert [found["scaled"].tolist() for found in second] == [[3, 6], [3, 6, 9, 12]]
    assert [found["sum"].item() for found in (*first, *second)] == [3, 10, 3, 10]
    assert again["scaled"].tolist() == [2, 4]
    assert prepared.call_count == 3  # two scopes, and once without values


def test_a_prepared_program_is_run_like_others_but_not_looked_for() -> None:
    with fresh_program() as (executor, main, startup):
        x = paddle.static.data("x", [None], "float32")
        total = persistable("total", [1], Constant(1.0))
        add_(total, x.sum(keepdim=True))
        executor.run(startup)
        run_prepared = prepared_run(executor, main, [total * 2])
        with fresh_scope(), patch.object(type(main), "__str__", side_effect=AssertionError):
            # The scope is the one in which it was prepared, and the program is not written as text.
            found = [run_prepared({"x": np.full(size, 1.0, np.float32)})[0].tolist() for size in (1, 3)]
            with pytest.raises(AssertionError):
                executor.run(main, {"x": np.ones(1, np.float32)}, [total])
    assert found == [[4], [10]]
