"""AdamW as in the paper: linear warm-up and decay, weight decay of matrices only, clipping by the global norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import paddle

from ernie_gram.distributed.row_gradients import Gradient, RowGradient
from ernie_gram.paddle_private import divide_all_, multiply_, squared_norm
from ernie_gram.training.config import OptimizerConfig
from ernie_gram.training.fused_adam import fused_adam_
from ernie_gram.training.variables import BETA_POWERS, LEARNING_RATE, MOMENTS, moment, persistent, set_array

# Gradients with at most this many numbers are joined for their norm.
SMALL = 1 << 16


def learning_rate(step: int, settings: OptimizerConfig, decay_steps: int) -> float:
    """Return the rate of the update that follows `step` updates.

    It rises linearly to settings.learning_rate over settings.warmup_steps, and falls linearly to 0 at `decay_steps`.
    """
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    return settings.learning_rate * max(0, decay_steps - step) / (decay_steps - settings.warmup_steps)


def clip_by_global_norm(
    gradients: Sequence[Gradient], max_norm: float, loss_scale: paddle.Tensor | None = None
) -> paddle.Tensor:
    """Scale gradients in place so that their global norm is at most `max_norm`; return their norm before, a scalar.

    Of a RowGradient only the used rows are read and scaled.

    If `loss_scale` is given, a scalar, the gradients are those of the loss times it, and are divided by it. If the norm
    is not finite, the gradients have no meaning afterwards.
    """
    tables = [gradient for gradient in gradients if isinstance(gradient, RowGradient)]
    dense = [gradient for gradient in gradients if not isinstance(gradient, RowGradient)]
    rows = [table.values for table in tables]
    # gradient * gradient would need as much memory again: the embedding of 300,000 n-grams has 230 million numbers.
    squares = [squared_norm(group) for group in _groups(dense)]
    squares += [table.squared_norm(values) for table, values in zip(tables, rows, strict=True)]
    norm = paddle.sqrt(paddle.add_n(squares).sum())
    # The divisor is NaN if the norm is; minimum(1, max_norm / norm) may hide a NaN.
    if loss_scale is not None:
        norm = norm / loss_scale
    divisor = paddle.maximum(norm, paddle.full_like(norm, max_norm)) / max_norm
    if loss_scale is not None:
        divisor = divisor * loss_scale
    divide_all_([*dense, *rows], divisor.reshape([1]))
    for table, values in zip(tables, rows, strict=True):
        table.replace(values)
    return norm


def _groups(gradients: list[paddle.Tensor]) -> list[paddle.Tensor]:
    """Return the gradients, small ones joined into one: more than half are biases and scales."""
    small = [gradient for gradient in gradients if prod(gradient.shape) <= SMALL]
    if len(small) < 2:
        return gradients
    large = [gradient for gradient in gradients if prod(gradient.shape) > SMALL]
    return [*large, paddle.concat([gradient if gradient.ndim == 1 else gradient.flatten() for gradient in small])]


def set_learning_rate(rate: float) -> None:
    """Set the learning rate of the next update."""
    set_array(LEARNING_RATE, np.array([rate], np.float32))


def add_adamw(
    pairs: list[tuple[paddle.Tensor, paddle.Tensor]],
    settings: OptimizerConfig,
    rate_scale: Callable[[str], float] | None,
    good: paddle.Tensor | None,
) -> None:
    """Add operations to the current program that update parameters in place.

    Matrices and embeddings decay, vectors (biases, and those of LayerNorm) do not; the filter in upstream's code is
    inverted. One operation updates all parameters of the same decay and the same factor of the rate. All parameters
    share the powers of beta1 and beta2, which count the updates. The learning rate is that of the settings until
    `set_learning_rate`.

    Args:
        pairs: parameters and their gradients, float32.
        rate_scale: parameter name -> factor of its learning rate, for layer-wise decay; None for 1.
        good: bool scalar, whether to make the update; None for always.
    """
    learning_rate = persistent(LEARNING_RATE, np.array([settings.learning_rate], np.float32))
    betas = (settings.beta1, settings.beta2)
    powers = [persistent(name, np.array([beta], np.float32)) for name, beta in zip(BETA_POWERS, betas, strict=True)]
    skip = None
    if good is not None:
        # The kernels read this flag on the host. Copied once here, it is not copied for every operation.
        skip = paddle.logical_not(good).reshape([1]).cpu()
    groups: dict[tuple[bool, float], list[tuple[paddle.Tensor, paddle.Tensor]]] = {}
    for parameter, gradient in pairs:
        factor = 1.0 if rate_scale is None else rate_scale(parameter.name)
        groups.setdefault((parameter.ndim > 1, factor), []).append((parameter, gradient))
    for (decays, factor), group in groups.items():
        parameters, gradients = map(list, zip(*group, strict=True))
        moment1, moment2 = ([moment(p.name + ending, list(p.shape)) for p in parameters] for ending in MOMENTS)
        rate = learning_rate if factor == 1 else learning_rate * factor
        decay = settings.weight_decay if decays else 0.0
        fused_adam_(parameters, gradients, rate, moment1, moment2, powers, skip, betas, settings.epsilon, decay)
    for power, beta in zip(powers, betas, strict=True):
        growth = paddle.full([1], beta)
        if good is not None:
            growth = paddle.where(good.reshape([1]), growth, paddle.ones([1]))
        multiply_(power, growth)
