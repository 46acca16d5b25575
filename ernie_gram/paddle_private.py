"""All names of Paddle that are private or not documented, as they were seen in version 3.3.1.

No other module uses such names. Each has a test, in tests/ernie_gram/test_paddle_private.py or of what uses it, that
fails if Paddle lacks the name or changes what it does. A name that ends with "_" works in place. Methods of values and
of operations of programs are not documented either; modules that rewrite programs call them.

This module loads Paddle; modules that are used before it is loaded import this one within functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import paddle
from paddle.base.core import Place as Place  # a device
from paddle.pir import IrMapping as IrMapping  # value -> the one that takes its place in a copy
from paddle.pir import Operation as Operation  # of a program
from paddle.pir import Value as Value  # a result of an operation
from paddle.static import MetaTensor as MetaTensor  # shape and dtype of a value

# Environment variable in which Paddle's launcher tells a rank the number of its GPU (3.3.1).
SELECTED_GPUS = "FLAGS_selected_gpus"
# Run the operations of a static program one by one, in its order. Otherwise operations that draw random numbers would
# run in a varying order, so that no run could be repeated; and the chunks of a computation that is split to save memory
# would be computed at the same time. (FLAGS_new_executor_serial_run is not enough: it uses a single thread, but visits
# the operations breadth first.) Seen in 3.3.1.
RUN_IN_ORDER = {"FLAGS_enable_pir_in_executor_trace_run": True}

# Add the second value to the first in place, and multiply by it (3.3.1: `paddle.add_` makes a copy in a program).
add_, multiply_ = paddle._C_ops.add_, paddle._C_ops.multiply_
# Divide a list of tensors by a tensor [1] in place (3.3.1); Paddle's own operation, for losses that are scaled. A GPU
# multiplies by 1 / divisor. On a CPU tensors become 0 from the first that is not finite.
divide_all_ = paddle._C_ops.check_finite_and_unscale_
# The sum of x * x, [1] (3.3.1), without a second tensor of the size of x.
squared_norm = paddle.nn.clip._squared_l2_norm
# A sequence of values as the list that an operation takes as one input (3.3.1).
combine = paddle._C_ops.builtin_combine
# The gradient of the input of a dropout (3.3.1), from its mask, uint8, the gradient of its result, the rate, whether
# nothing is dropped, and the mode.
dropout_gradient = paddle._C_ops.dropout_grad
# Let operations that follow be added in front of an operation of the current program, or after it, or at the end of a
# block (3.3.1).
insert_before, insert_after = paddle.pir.set_insertion_point, paddle.pir.set_insertion_point_after
insert_at_end = paddle.pir.set_insertion_point_to_block_end
# Write a program to a JSON file, whose path is text (3.3.1).
write_program = paddle.base.core.serialize_pir_program
# A context in dynamic mode, also within static mode (3.3.1).
dynamic_guard = paddle.base.dygraph.guard
# The device that Paddle would use (3.3.1: without the last underscore, it is none in static mode).
expected_place = paddle.base.framework._current_expected_place_
# The store, a shared dictionary, of the first group of processes, by `init_parallel_env` (3.3.1).
first_store = paddle.base.core.create_or_get_global_tcp_store


def add_rows_(table: Value, rows: Value, values: Value) -> Value:
    """Add `values` [R, ...] to rows [R] of a table in place (3.3.1); a row that is there twice gets both."""
    return paddle._C_ops.index_add_(table, rows, values, 0)


def set_rows_(table: Value, rows: Value, values: Value) -> Value:
    """Set rows [R] of a table in place to `values` [R, ...] (3.3.1)."""
    return paddle._C_ops.scatter_(table, rows, values, True)


def random_integers(least: int, below: int, count: int) -> Value:
    """Return int32 numbers [count] in [least, below), drawn on the host (3.3.1: `paddle.randint` takes no device)."""
    return paddle._C_ops.randint(least, below, [count], paddle.int32, paddle.CPUPlace())


def merged_adam_(*lists: list[Value]) -> None:
    """Update many parameters by Adam (3.3.1), with betas and epsilon of 0.

    Args:
        lists: parameters, gradients, rates, first and second moments, and the powers of both betas.
    """
    *first, powers = lists
    paddle._C_ops.merged_adam_(*first, None, powers, powers, None, 0.0, 0.0, 0.0, False, True, False)


def run_python(inputs: Sequence[Value], definition: dict[str, Any]) -> list[Value]:
    """Return the results of an operation that calls a Python function (3.3.1).

    Args:
        definition: `name`, `input_names`, `output_names`, and `attrs` with two functions: `fn_ptr` computes tensors
            from tensors, and `infer_meta_fn_ptr` MetaTensors from MetaTensors.
    """
    return paddle._C_ops._run_python_op(*inputs, **definition, inplace_map={})


def persistable(name: str, shape: list[int], initializer: paddle.nn.initializer.Initializer) -> Value:
    """Return a float32 variable of the scope (3.3.1: `paddle.static.create_global_var` does not work in programs)."""
    return paddle.pir.core.create_persistable_value("float32", shape, name, initializer=initializer)


def untrained_parameter(
    name: str, shape: list[int], initializer: paddle.nn.initializer.Initializer, dtype: paddle.dtype = paddle.float32
) -> Value:
    """Return a parameter of the current program that is not trained (3.3.1)."""
    return paddle.pir.core.create_parameter(dtype, shape, name, initializer=initializer, trainable=False)


def clone(operation: Operation, mapping: IrMapping) -> Operation:
    """Add a copy of an operation to the current program (3.3.1).

    Args:
        mapping: has the inputs of the copy; its results are added.
    """
    return operation.clone(mapping, paddle.pir.CloneOptions(False, True, True))


def read_program(path: str) -> paddle.static.Program:
    """Return the program of a JSON file (3.3.1)."""
    program = paddle.static.Program()
    paddle.base.core.deserialize_pir_program(path, program)
    return program


@cache
def _tracer() -> Any:
    return paddle.base.dygraph.tracer.Tracer()


def eager_guard() -> AbstractContextManager[None]:
    """Return a context in dynamic mode for operations alone (3.3.1); `dynamic_guard` takes a hundred times as long."""
    return paddle.base.framework._dygraph_guard(_tracer())


def static_guard() -> AbstractContextManager[None]:
    """Return a context in static mode, at whose end the caller's tracer is restored (3.3.1)."""
    return paddle.base.framework._dygraph_guard(None)


def prepared_run(
    executor: paddle.static.Executor, program: paddle.static.Program, fetched: list[Value]
) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    """Return what `executor.run` does with a finished program in the present scope: feed -> arrays of what is fetched.

    To find what it prepared in the first run, Paddle (3.3.1) writes the whole program as text in every run, which takes
    20 to 40 ms for 4,500 operations; and it keeps the last feed.
    """
    scope = paddle.static.global_scope()
    asked = SimpleNamespace(program=program, feed={}, fetch_list=fetched, plan=None, place=executor.place, scope=scope)
    asked.feed_var_name, asked.fetch_var_name = "feed", "fetch"
    prepared, run, feeds = executor._executor_cache._get_pir_program_and_executor(asked)

    def run_prepared(feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        executor._pir_feed_data(prepared, feed, scope, feeds)
        found: list[np.ndarray] = run.run(list(feed))
        return found

    return run_prepared


def host_peak() -> int:
    """Return the largest number of bytes of main memory that Paddle has allocated at one time (3.3.1)."""
    return int(paddle.base.core.host_memory_stat_peak_value("Allocated", 0))


def in_memory_of(x: paddle.Tensor) -> paddle.Tensor:
    """Return another float32 tensor with the shape and the memory of x, but not with its layout (3.3.1)."""
    if not math.prod(x.shape):
        return new_tensor(x.shape, "float32")
    out = paddle.empty([0], "float32")
    x._share_buffer_to(out)
    out.get_tensor()._set_dims(x.shape)
    return out


def new_tensor(shape: Sequence[int], dtype: str) -> paddle.Tensor:
    """Return a tensor of any numbers that has memory even if it has no numbers, which `pd_op.pylayer` reads (3.3.1)."""
    if math.prod(shape):
        return paddle.empty(shape, dtype)
    out = paddle.empty([1], dtype)
    out.get_tensor()._set_dims(shape)
    return out


def share_memory(variable: Any, x: paddle.Tensor) -> None:
    """Let the tensor of a scope's variable have the memory of x, also after x is gone (3.3.1)."""
    variable._share_data_with(x.get_tensor())


def use_new_store(host: str, port: int, is_server: bool, processes: int, seconds: int) -> Any:
    """Return a new store, which the next groups of processes use (3.3.1); it must live as long as they do."""
    store = paddle.base.core.TCPStore(host, port, is_server, processes, seconds)
    paddle.distributed.collective._set_default_store(store)
    return store
