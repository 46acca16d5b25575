"""Plain and memory-efficient attention: the same numbers, and which one is faster."""

from __future__ import annotations

# isort: off
from ernie_gram.distributed.world import start_world  # before Paddle: it sets the number of threads

import paddle
# isort: on

from ernie_gram.gpu_checks.equal_numbers import HALF, compared, on_gpu, require_equal
from ernie_gram.gpu_checks.kernels import missing_kernels, precisions
from ernie_gram.gpu_checks.lowering import Kernel
from ernie_gram.gpu_checks.outcome import Figures, Passed, Setup, Skipped
from ernie_gram.gpu_checks.runs import NO_DROPOUT, started, trained
from ernie_gram.gpu_checks.speed import base_config, measured, started_trial
from ernie_gram.planning.trial_step import shortened

PLAIN, EFFICIENT = "plain", "memory_efficient"
KERNELS = ("memory_efficient_attention", "memory_efficient_attention_grad")


def attention(setup: Setup) -> Passed:
    """Compare ten steps of a small model, and the time of steps of a few layers of the base model."""
    precision = next(each for each in ("bfloat16", "float16") if each in precisions())
    needed = {EFFICIENT: [Kernel(name, dtype) for name in KERNELS for dtype in ("float32", precision)]}
    missing = missing_kernels(needed, paddle.base.core._get_registered_phi_kernels("function"))
    if missing:
        raise Skipped(f"this Paddle has no GPU kernel {missing.popitem()[0].name}")
    more = (*NO_DROPOUT, *started(setup), f"--model.attention={EFFICIENT}")
    figures: Figures = compared(trained(setup, EFFICIENT, "gpu", more=more), on_gpu(setup))
    # This process may have TF32 (see catalog.py), and the plain steps not.
    shown = require_equal(figures, HALF, by_name=False)
    world, sequences = start_world("gpu", precision), 8
    for kind in (PLAIN, EFFICIENT):
        config, sizes = shortened(*base_config(setup, precision, f"--model.attention={kind}"))
        made = started_trial(config, sizes, sequences, world)
        figures[kind] = {**measured(made), "allocated": made.allocated}
    times = [figures[kind]["step_ms"] for kind in (PLAIN, EFFICIENT)]
    return Passed(
        f"differ by {shown}; a step of {config.model.num_hidden_layers} layers in {precision}: "
        f"{times[0]:.0f} ms plain, {times[1]:.0f} ms memory-efficient",
        figures,
    )
