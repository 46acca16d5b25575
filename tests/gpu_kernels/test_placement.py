"""The simulation finds faults in small programs, and chooses the kernels that Paddle's executor chooses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import paddle
import pytest

from ernie_gram.distributed.world import start_world
from ernie_gram.gpu_checks.programs import pretraining_cases
from tasks.kernels import task_cases
from tests.gpu_kernels.operations import attribute_operands
from tests.gpu_kernels.placement import Placement, simulate
from tests.gpu_kernels.table import read_table

Tensor = Any


def placement_of(build: Callable[[Tensor], Any], dtype: str = "float32", without: str | None = None) -> Placement:
    """Return what a program does on a GPU that `build` adds to a feed x [rows, 4], with a table without a kernel."""
    start_world("cpu")
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        build(paddle.static.data("x", [None, 4], dtype))
    table = read_table()
    table.pop(without or "", None)
    return simulate(program, table)


def copies(found: Placement) -> tuple[list[str], list[str]]:
    return [str(copy) for copy in found.to_host], [str(copy) for copy in found.to_gpu]


def test_an_operation_without_a_kernel_runs_on_the_host_with_copies_on_both_sides() -> None:
    def build(x: Tensor) -> None:
        paddle.nn.functional.gelu(x * 2) + x

    found = placement_of(build)
    assert (found.fallbacks, found.feeds, copies(found)) == (set(), ["x"], ([], []))
    found = placement_of(build, without="gelu")
    assert found.fallbacks == {("gelu", "float32")}
    assert copies(found) == (["gelu(x) from scale"], ["add(x) from gelu"])


def test_a_shape_on_the_gpu_is_fetched_by_each_operation_that_reads_it() -> None:
    def build(x: Tensor) -> None:
        shape = paddle.concat([paddle.to_tensor([-1]), paddle.shape(x)[1:]])
        paddle.reshape(x, shape)
        paddle.reshape(x * 2, shape)

    assert copies(placement_of(build)) == (["reshape(shape) from concat"] * 2, ["concat(x) from slice"])


def test_a_shape_on_the_host_stays_there() -> None:
    def build(x: Tensor) -> None:
        rows = paddle.shape(x)[0]
        paddle.reshape(x, [rows * 2, 2])
        paddle.arange(rows)

    assert copies(placement_of(build)) == ([], [])


def test_values_that_kernels_read_on_the_host_are_found() -> None:
    found = placement_of(lambda x: paddle.nonzero(x))
    assert copies(found) == (["nonzero(its number of rows) from nonzero"], [])
    found = placement_of(lambda x: paddle.full([4], 0.0) + paddle.tensor.creation._memcpy(x, paddle.CPUPlace()))
    assert copies(found) == (["memcpy(x) from pd_op.data"], ["add(y) from memcpy"])
    flag = placement_of(lambda x: update(x, is_on_host=False))
    assert copies(flag)[0] == ["adamw(skip_update) from isfinite"]
    assert copies(placement_of(lambda x: update(x, is_on_host=True)))[0] == ["memcpy(x) from isfinite"]


def update(x: Tensor, is_on_host: bool) -> None:
    """Add an update that is skipped, with the flag where it is computed, or copied to the host."""
    parameter = paddle.create_parameter([4], "float32")
    loss = (x * parameter).sum()
    optimizer = paddle.optimizer.AdamW(0.1)
    pairs = optimizer.backward(loss)
    flag = paddle.isfinite(loss)
    optimizer._set_auxiliary_var(
        "found_inf", paddle.tensor.creation._memcpy(flag, paddle.CPUPlace()) if is_on_host else flag
    )
    optimizer._apply_optimize(None, None, pairs)


def test_attributes_of_an_operation_are_those_of_the_package() -> None:
    found = attribute_operands()
    assert found["pd_op.reshape"] == {"shape"}
    assert found["pd_op.slice_grad"] == {"starts", "ends"}
    assert found["pd_op.expand"] == {"shape"}
    assert found["pd_op.add"] == set()


KERNEL = re.compile(r'kernel_key:<backend:\w+\|layout:[^|]*\|dtype:(\w+)>.*?kernel_name:"(\w+)".*?op_name:"([\w.]+)"')
# Not a kernel in the simulation: a feed or a variable.
INSERTED = {"pd_op.data"}


@pytest.mark.parametrize("name", ["pre-training", "task"])
def test_kernels_are_those_that_the_executor_chooses(name: str, gpu: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Paddle prints the program that its executor would run on a CPU, with the name and dtype of each kernel."""
    cases = {
        "pre-training": lambda: pretraining_cases("full", "float32", gpu),
        "task": lambda: task_cases("classification, mean", "float32", gpu),
    }
    program = next(cases[name]()).program
    keys = simulate(program, read_table()).keys  # first, because the executor changes the program
    core = paddle.base.core
    paddle.set_flags({"FLAGS_print_ir": True})
    try:
        plan = core.Plan([core.Job("default")], {"default": program})
        with pytest.raises(RuntimeError, match="in scope"):  # the parameters have no values, which is noticed later
            core.StandaloneExecutor(paddle.CPUPlace(), plan, paddle.static.Scope())
    finally:
        paddle.set_flags({"FLAGS_print_ir": False})
    _, lowered = capfd.readouterr().out.split("IR after lowering")
    chosen = [(found[3], found[2], found[1]) for found in KERNEL.finditer(lowered)]
    assert len(keys) > 300
    assert keys == [key for key in chosen if key[0] not in INSERTED]
