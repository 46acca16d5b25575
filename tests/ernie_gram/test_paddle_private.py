"""Paddle's private names: each function and constant is tested, so that a new version says what it changed."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.support.commands import python
from tests.support.static_programs import fresh_program, fresh_scope

import paddle  # isort: skip
from paddle.nn.initializer import Assign, Constant  # isort: skip

from ernie_gram import paddle_private as private  # isort: skip

Build = Callable[[], list[private.Value]]


def run(build: Build) -> tuple[list[np.ndarray], list[private.Operation]]:
    """Return the values of a program and its operations."""
    with fresh_program() as (executor, main, startup):
        fetched = build()
        executor.run(startup)
        return executor.run(main, fetch_list=fetched), main.global_block().ops


def values_of(build: Build) -> list[list[float]]:
    return [value.tolist() for value in run(build)[0]]


def names_of(operations: list[private.Operation]) -> list[str]:
    return [operation.name().removeprefix("pd_op.") for operation in operations]


def test_tensors_are_changed_in_place() -> None:
    def build() -> list[private.Value]:
        total, product, half = (paddle.to_tensor([2.0, 4.0]) for _ in range(3))
        private.add_(total, paddle.to_tensor([3.0, 5.0]))
        private.multiply_(product, paddle.to_tensor([3.0, 5.0]))
        other = paddle.to_tensor([[6.0]])
        private.divide_all_([half, other], paddle.full([1], 2.0))
        rows, values = paddle.to_tensor([2, 0, 2]), paddle.to_tensor([[1.0], [2.0], [4.0]])
        added, replaced = paddle.ones([3, 1]), paddle.ones([3, 1])
        private.add_rows_(added, rows, values)
        private.set_rows_(replaced, rows[:2], values[:2])
        return [each * 1 for each in (total, product, half, other, added, replaced)]

    assert values_of(build) == [[5, 9], [6, 20], [1, 2], [[3]], [[3], [1], [6]], [[2], [1], [1]]]


def test_the_squared_norm_is_one_operation() -> None:
    values, operations = run(lambda: [private.squared_norm(paddle.to_tensor([[3.0, 4.0]]))])
    assert values[0].tolist() == [25]
    assert names_of(operations).count("squared_l2_norm") == 1


def test_integers_are_drawn_on_the_host() -> None:
    values, operations = run(lambda: [private.random_integers(-3, 3, 1000)])
    assert set(values[0].tolist()) == {-3, -2, -1, 0, 1, 2}
    assert values[0].dtype == np.int32
    assert next(each for each in operations if each.name() == "pd_op.randint").attrs()["place"].is_cpu_place()


def test_operations_are_combined_copied_and_differentiated() -> None:
    def build() -> list[private.Value]:
        total = paddle.add_n([paddle.full([1], number) for number in (1.0, 2.0)])
        operation = total.get_defining_op()
        together = operation.operand_source(0).get_defining_op()
        private.insert_before(operation)
        operation.operand(0).set_source(private.combine([paddle.full([1], 3.0), paddle.full([1], 4.0)]))
        together.erase()
        private.insert_at_end(paddle.static.default_main_program().global_block())
        mask, gradient = paddle.to_tensor([1, 0, 1]).astype("uint8"), paddle.to_tensor([1.0, 2.0, 3.0])
        of_dropout = private.dropout_gradient(mask, gradient, paddle.full([], 0.5), False, "upscale_in_train")
        x, y = paddle.full([1], 2.0), paddle.full([1], 5.0)
        operation, mapping = (x * x).get_defining_op(), private.IrMapping()
        mapping.add(x, y)
        operation.set_int_attr("mark", 7)
        copy = private.clone(operation, mapping)
        assert copy.int_attr("mark") == 7
        assert mapping.look_up(operation.result(0)).id == copy.result(0).id
        return [total, of_dropout, copy.result(0)]

    assert values_of(build) == [[7], [2, 0, 6], [25]]


def test_merged_adam_is_added_to_a_program_that_can_be_written_and_read(tmp_path: Path) -> None:
    with fresh_program() as (_, program, _):
        lists = [[paddle.ones([2]) * number for number in (1, 2)] for _ in range(5)]
        private.merged_adam_(*lists, [paddle.ones([1])] * 2)
        private.write_program(program, str(tmp_path / "program.json"))
        read = private.read_program(str(tmp_path / "program.json"))
        # The names that fused_adam.py changes.
        assert "1.merged_adam_" in (tmp_path / "program.json").read_text(encoding="utf-8")
        assert names_of(read.global_block().ops) == names_of(program.global_block().ops)
        assert "merged_adam_" in names_of(read.global_block().ops)


def test_an_operation_calls_a_python_function() -> None:
    def shape(x: private.MetaTensor) -> private.MetaTensor:
        return private.MetaTensor(shape=[*x.shape, 2], dtype=paddle.int32)

    def compute(x: paddle.Tensor) -> paddle.Tensor:
        return paddle.stack([x, 2 * x], -1).astype("int32")

    def compute_in_dynamic_mode(x: paddle.Tensor) -> paddle.Tensor:
        with private.dynamic_guard():
            return compute(x)

    functions = {"infer_meta_fn_ptr": shape, "fn_ptr": compute_in_dynamic_mode}
    definition = {"name": "doubled", "input_names": ["x"], "output_names": ["y"], "attrs": functions}
    values, operations = run(lambda: [private.run_python([paddle.to_tensor([1.0, 3.0])], definition) * 1])
    assert values[0].tolist() == [[1, 2], [3, 6]]
    assert any(name.startswith("py_op.doubled") for name in names_of(operations))


def test_variables_of_the_scope_start_from_an_initializer() -> None:
    def build() -> list[private.Value]:
        variable = private.persistable("variable", [2], Assign(np.array([1, 2], np.float32)))
        parameter = private.untrained_parameter("parameter", [1], Constant(3.0))
        assert not parameter.trainable
        assert [each.persistable for each in (variable, parameter)] == [True, True]
        return [variable * 1, parameter * 1]

    values, operations = run(build)
    assert [value.tolist() for value in values] == [[1, 2], [3]]
    assert names_of(operations).count("builtin.parameter") == 1


def test_operations_are_added_where_they_are_wanted() -> None:
    with fresh_program() as (_, program, _):
        x = paddle.ones([2])
        first, last = paddle.sqrt(x), paddle.exp(x)
        block = program.global_block()
        private.insert_before(last.get_defining_op())
        paddle.abs(x)
        private.insert_after(first.get_defining_op())
        paddle.sin(x)
        private.insert_at_end(block)
        paddle.cos(x)
        assert names_of(block.ops)[-5:] == ["sqrt", "sin", "abs", "exp", "cos"]


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


STORES = """
import sys
import paddle
from paddle.distributed import collective
from ernie_gram import paddle_private as private
first = private.first_store()
first.set("key", "1")
store = private.use_new_store("127.0.0.1", int(sys.argv[1]), True, 1, 60)
assert collective._default_store is store
store.set("key", "2")
print(first.get("key").decode(), store.get("key").decode())
"""


def test_a_new_store_is_used_and_shares_nothing_with_the_first() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [each.getsockname()[1] for each in (one, other)]
    done = python("-c", STORES, str(ports[0]), PADDLE_MASTER=f"127.0.0.1:{ports[1]}", PADDLE_TRAINERS_NUM="1")
    assert (done.stdout.split(), done.returncode) == (["1", "2"], 0), done.stderr
