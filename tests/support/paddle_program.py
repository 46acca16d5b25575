"""What a built program does, as Paddle reports it: its matrix products, and the memory that a step allocates."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import PretrainNetwork
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.program import Program, open_program
from ernie_gram.training.recompute import recompute_layers
from reader.batches.fields import Batch
from tests.support.static_programs import fresh_scope

import paddle  # isort: skip

# On a CPU, another thread frees what is not used any more: at once, while the next operation runs, or, on a loaded
# machine, later. So the smallest peaks of many steps count; the very smallest may be those of a step after which memory
# was not freed for SETTLED_SECONDS.
STEPS, SMALLEST = 41, 2
# Fewer steps are enough if a quarter of them have the same peak, the smallest.
FEW_STEPS = 12
SETTLED_SECONDS = 0.05


def product_flops(config: PretrainConfig, sizes: CorpusSizes, batch: Batch) -> float:
    """Return the operations of all matrix products of a training step, from the shapes of their operands at run time.

    A gradient of a product has one product for each operand that needs a gradient. Products with a dimension of 1 are
    additions and inner products in another form, and are left out, as is the one that draws samples. Only the forward
    pass is run, because the backward pass reads the same operands.
    """
    network = PretrainNetwork(config, sizes, 1)
    with fresh_scope() as executor:
        with open_program(network.fields, portable=True) as opened:
            total = paddle.add_n([term.total for term in network.losses(opened.feeds)])
            block = opened.main.global_block()
            products = _products(block)
            shapes = [paddle.shape(op.operand_source(i)) for op in products for i in (0, 1)]
            forward = len(block.ops)
            parameters = [p for p in block.all_parameters() if not p.stop_gradient]
            wanted = {gradient.id for gradient in paddle.static.gradients([total], parameters)}
            gradients = [op for op in block.ops if op.name() == "pd_op.matmul_grad"]
            times = {_operands(op): 1 for op in products}
            for op in gradients:
                times[_operands(op)] += sum(not r.use_empty() or r.id in wanted for r in op.results())
            if config.trainer.recompute:
                recompute_layers(total)
                again = [op for op in products if op.has_attr("recompute_layer")]
                assert len(again) == sum(op.name() == "pd_op.matmul" for op in block.ops[forward:])
                for op in again:
                    times[_operands(op)] += 1
            for op in reversed(block.ops[forward:]):
                block.remove_op(op)
        executor.run(opened.startup)
        fetched = executor.run(opened.main, feed={name: batch[name] for name in opened.feeds}, fetch_list=shapes)
    flops = 0.0
    for index, op in enumerate(products):
        flops += times[_operands(op)] * _operations(op, fetched[2 * index], fetched[2 * index + 1])
    return flops


def _products(block: Any) -> list[Any]:
    return [op for op in block.ops if op.name() == "pd_op.matmul" and not _draws(op)]


def _draws(product: Any) -> bool:
    """Return whether a product adds up the probabilities of the blocks from which samples are drawn."""
    names = [product.operand_source(i).get_defining_op().name() for i in (0, 1)]
    return names == ["pd_op.softmax", "pd_op.one_hot"]


def _operations(op: paddle.base.libpaddle.pir.Operation, left: np.ndarray, right: np.ndarray) -> float:
    """Return the operations of a product of operands with these shapes, 0 if it has a dimension of 1."""
    attributes = op.attrs()
    rows, inner = left[-2:][::-1] if attributes["transpose_x"] else left[-2:]
    columns = right[-2] if attributes["transpose_y"] else right[-1]
    sizes = [float(size) for size in (rows, inner, columns)]
    return 0.0 if 1 in sizes else 2.0 * float(np.prod([*left[:-2], *sizes]))


def _operands(op: paddle.base.libpaddle.pir.Operation) -> tuple[int, int]:
    return op.operand_source(0).id, op.operand_source(1).id


def step_memory(build: Callable[[], Program], batch: Batch) -> int:
    """Return the bytes that Paddle has allocated on the CPU at the peak of a training step, without other programs."""
    with fresh_scope() as executor:
        program = build()
        executor.run(program.startup)
        parameters = [p for p in program.main.global_block().all_parameters() if p.name in program.parameters]
        peaks: list[int] = []
        while len(peaks) < STEPS and not (len(peaks) >= FEW_STEPS and peaks[len(peaks) // 4] < 1.001 * peaks[0]):
            peaks = sorted([*peaks, _beyond_step(program, executor, batch)])
    # The parameters and two moments of Adam remain allocated after the step.
    return peaks[SMALLEST] + 3 * 4 * sum(int(np.prod(p.shape)) for p in parameters)


def _beyond_step(program: Program, executor: paddle.static.Executor, batch: Batch) -> int:
    """Return the bytes at the peak of a step that are no longer allocated after it."""
    core = paddle.base.core
    _settle()
    core.host_memory_stat_reset_peak_value("Allocated", 0)
    program.run(executor, batch)
    _settle()
    return int(core.host_memory_stat_peak_value("Allocated", 0) - core.host_memory_stat_current_value("Allocated", 0))


def _settle() -> None:
    """Wait until no other thread frees memory."""
    before = -1
    while before != (before := paddle.base.core.host_memory_stat_current_value("Allocated", 0)):
        time.sleep(SETTLED_SECONDS)
