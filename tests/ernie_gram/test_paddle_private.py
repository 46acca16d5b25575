"""Paddle's private names of which no test elsewhere would show that a new version has changed them."""

from __future__ import annotations

import inspect

import numpy as np

from tests.support.commands import python
from tests.support.static_programs import fresh_program, fresh_scope

import paddle  # isort: skip

from ernie_gram import paddle_private as private  # isort: skip


def test_integers_are_drawn_on_the_host() -> None:
    with fresh_program() as (executor, main, _):
        drawn = private.random_integers(-3, 3, 1000)
        values = executor.run(main, fetch_list=[drawn])[0]
        assert drawn.get_defining_op().attrs()["place"].is_cpu_place()
    assert set(values.tolist()) == {-3, -2, -1, 0, 1, 2}
    assert values.dtype == np.int32


def test_modes_are_nested_and_restored_and_each_has_a_device() -> None:
    with fresh_program() as (_, program, _):
        place: private.Place = private.expected_place()
        assert place.is_cpu_place()
        with private.dynamic_guard():
            assert private.expected_place().is_cpu_place()
            x = paddle.ones([2])
            x.stop_gradient = False
            total = (x * 3).sum()
            with private.static_guard():
                assert not paddle.in_dynamic_mode()
            total.backward()
            assert x.grad.tolist() == [3, 3]
        assert not paddle.in_dynamic_mode()
        with private.eager_guard():
            assert (paddle.ones([2]) + 1).tolist() == [2, 2]
        assert not paddle.in_dynamic_mode()
        assert program.global_block().ops == []


def test_constants_are_those_of_this_paddle() -> None:
    from paddle.distributed.launch.controllers import collective

    assert paddle.get_flags(list(private.RUN_IN_ORDER)).keys() == private.RUN_IN_ORDER.keys()
    assert f'"{private.SELECTED_GPUS}"' in inspect.getsource(collective)


PEAK = """
import paddle
from ernie_gram import paddle_private as private
before = private.host_peak()
kept = paddle.ones([2**22])
print(before, private.host_peak())
"""


def test_the_peak_of_main_memory_grows_with_a_large_tensor() -> None:
    """In a process of its own: where tensors have shared memory, what Paddle counts as allocated may be below zero."""
    done = python("-c", PEAK)
    before, after = map(int, done.stdout.split())
    assert 4 * 2**22 <= after - before < 5 * 2**22, done.stderr


def test_tensors_and_variables_share_memory_without_a_copy() -> None:
    with fresh_scope(), private.dynamic_guard():
        x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        other = private.in_memory_of(x)
        assert other is not x
        assert (other.data_ptr(), other.shape) == (x.data_ptr(), x.shape)
        variable = paddle.static.Scope().var("x").get_tensor()
        private.share_memory(variable, x)
        x.scale_(2.0)
        assert np.array(variable).tolist() == [[2, 4], [6, 8]]
