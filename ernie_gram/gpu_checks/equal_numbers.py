"""Check that training on the GPU gives the numbers of training on the CPU, in each precision and after resuming.

The process of these checks has NVIDIA_TF32_OVERRIDE=0 (see check.py): without it, the operands of float32 products
have 11 bits on an Ampere GPU or later.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ernie_gram.gpu_checks.check import Numbers, Setup, Skipped, require
from ernie_gram.gpu_checks.kernels import precisions
from ernie_gram.gpu_checks.runs import (
    STEPS,
    difference,
    largest_difference,
    mean_gradients,
    parameters,
    steps_of,
    trained,
)
from ernie_gram.run.checkpoint import Arrays

# Largest relative differences. Two ways of computing float32 products on a CPU differ by 1e-7 in losses and 2e-6 in
# parameters after ten steps; bfloat16 and float16 have 8 and 11 bits.
FLOAT32, HALF = 1e-4, 2e-2
# Softmax does not change when a number is added to all scores of a row, so the gradient of the bias of the keys is only
# rounding error.
WITHOUT_GRADIENT = "_key_fc.b_0"
# Each quantity that is compared -> its name in messages.
QUANTITIES = {
    "loss": "the loss",
    "norm": "the norm of the gradient",
    "parameters": "the value",
    "gradients": "the mean gradient",
}
# A scale of the loss at which the gradients overflow, even in float32.
OVERFLOWING_SCALE = 2**66
# The scale halves at each overflow. float16 needs fewer than 66 halvings.
OVERFLOWING_STEPS = 70
# An objective that draws samples, with dropout.
DRAWING = "full"
DROPOUT = ("--model.hidden_dropout_prob=0.1", "--model.attention_probs_dropout_prob=0.1")


def float32(setup: Setup) -> str:
    """Compare ten steps on the GPU with the same steps on the CPU."""
    return f"{STEPS} steps on GPU and CPU differ by {compare(setup, on_gpu(setup), _on_cpu(setup), FLOAT32)}"


def bfloat16(setup: Setup) -> str:
    """Compare ten steps in bfloat16 on the GPU with steps in float32 on the CPU."""
    return _half(setup, "bfloat16")


def float16(setup: Setup) -> str:
    """Compare ten steps in float16 on the GPU with steps in float32 on the CPU."""
    # Small enough for no overflow, which would skip an update.
    return _half(setup, "float16", "--optimizer.loss_scale=1024")


def overflow(setup: Setup) -> str:
    """Check that overflowing float16 updates are skipped, and that the loss scale falls until an update is made."""
    settings = (f"--optimizer.loss_scale={OVERFLOWING_SCALE}", f"--trainer.max_skipped={OVERFLOWING_STEPS}")
    output = trained(setup, "overflow", "gpu", "--optimizer.precision=float16", *settings, steps=OVERFLOWING_STEPS)
    records = steps_of(output)
    scales = [record["loss_scale"] for record in records]
    skipped = int(records[-1]["skipped"])
    setup.numbers.update(skipped=skipped, steps=len(records), loss_scale=scales[-1])
    require(all("loss" in record for record in records), "a loss is not finite")
    require(skipped > 0, f"no update was skipped with a loss scale of 2^66 ({len(records)} steps)")
    require(skipped < len(records), f"all {skipped} updates were skipped; the loss scale is {scales[-1]:g}")
    first = (scales[0], records[0]["skipped"])
    require(first == (OVERFLOWING_SCALE / 2, 1), f"the first overflow left scale, skipped = {first}")
    values = parameters(output).values()
    require(all(bool(np.isfinite(each).all()) for each in values), "a parameter is not finite")
    return f"{skipped} of {len(records)} updates skipped, the loss scale fell to {scales[-1]:g}"


def recompute(setup: Setup) -> str:
    """Compare steps of the full objective, with dropout and samples, with and without recompute."""
    plain = trained(setup, DRAWING, "gpu", *DROPOUT, rung=DRAWING)
    again = trained(setup, "recompute", "gpu", *DROPOUT, "--trainer.recompute=true", rung=DRAWING)
    return f"{STEPS} steps with and without differ by {compare(setup, again, plain, FLOAT32)}"


def resume(setup: Setup) -> str:
    """Train on the GPU, resume on the CPU, then again on the GPU; compare with an uninterrupted training on the GPU."""
    for device, until in (("gpu", STEPS // 3), ("cpu", 2 * STEPS // 3), ("gpu", STEPS)):
        output = trained(setup, "resumed", device, steps=until)
    shown = compare(setup, output, on_gpu(setup), FLOAT32)
    return f"GPU, CPU, GPU and GPU alone differ by {shown} in {STEPS} steps"


def on_gpu(setup: Setup) -> Path:
    """Return the folder of ten steps in float32 on the GPU."""
    return trained(setup, "gpu", "gpu")


def _on_cpu(setup: Setup) -> Path:
    return trained(setup, "cpu", "cpu")


def _half(setup: Setup, precision: str, *settings: str) -> str:
    if precision not in precisions():
        raise Skipped(f"this GPU has no {precision}")
    output = trained(setup, precision, "gpu", f"--optimizer.precision={precision}", *settings)
    return f"{STEPS} steps and float32 on the CPU differ by {compare(setup, output, _on_cpu(setup), HALF, False)}"


def compare(setup: Setup, found: Path, expected: Path, tolerance: float, by_name: bool = True) -> str:
    """Compare losses, norms of the gradient, last parameters and mean gradients of two runs; see `require_equal`.

    Parameters and gradients are compared as one vector each, and by name. The differences are added to `setup.numbers`.
    """
    numbers = setup.numbers
    for key, logged in (("loss", "loss"), ("norm", "grad_norm")):
        numbers[key] = largest_difference(steps_of(found), steps_of(expected), logged)
    for key, arrays_of in (("parameters", parameters), ("gradients", mean_gradients)):
        one, two = (
            {n: a for n, a in arrays_of(run).items() if not n.endswith(WITHOUT_GRADIENT)} for run in (found, expected)
        )
        assert one.keys() == two.keys()
        numbers[key] = difference(_joined(one), _joined(two))
        numbers[f"{key}_by_name"] = {name: difference(one[name], two[name]) for name in two}
    return require_equal(numbers, tolerance, by_name)


def _joined(arrays: Arrays) -> np.ndarray:
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)])


def require_equal(numbers: Numbers, tolerance: float, by_name: bool = True) -> str:
    """Return the differences as text; raises Failed if one exceeds the tolerance.

    With `by_name`, the tolerance applies to each parameter, otherwise to all of them as one vector.
    """
    shown = []
    for key, what in QUANTITIES.items():
        names = numbers.get(f"{key}_by_name", {}) if by_name else {}
        worst = max(names, key=lambda name: names[name], default=None)
        value = names[worst] if worst else numbers[key]
        which = f"{what} of {worst}" if worst else what
        require(value <= tolerance, f"{which} differs by {value:.1e}, more than {tolerance:g}")
        shown.append(f"{value:.1e} ({key})")
    return ", ".join(shown)
