"""AdamW as in the paper: linear warm-up and decay, weight decay of matrices only, clipping by the global norm."""

from __future__ import annotations

from collections.abc import Callable

import paddle
from paddle.nn.clip import _squared_l2_norm

from ernie_gram.training.config import OptimizerConfig


def learning_rate(step: int, settings: OptimizerConfig, decay_steps: int) -> float:
    """Return the rate of the update that follows `step` updates.

    It rises linearly to settings.learning_rate over settings.warmup_steps, and falls linearly to 0 at `decay_steps`.
    """
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    return settings.learning_rate * max(0, decay_steps - step) / (decay_steps - settings.warmup_steps)


def is_decayed(name: str) -> bool:
    """Return whether weight decay applies to a parameter: to matrices and embeddings, not to LayerNorm and biases.

    The filter in upstream's code is inverted.
    """
    return not (name.endswith((".b_0", "_bias")) or "layer_norm" in name)


def clip_by_global_norm(
    gradients: list[paddle.Tensor], max_norm: float, loss_scale: paddle.Tensor | None = None
) -> tuple[list[paddle.Tensor], paddle.Tensor]:
    """Scale gradients so that their global norm is at most `max_norm`; also return their norm before, a scalar.

    If `loss_scale` is given, a scalar, the gradients are those of the loss times it, and are divided by it.
    """
    # `_squared_l2_norm` is private in Paddle (seen in 3.3.1). gradient * gradient would allocate a second tensor of the
    # gradient's size, and the embedding of 300,000 n-grams has 230 million numbers.
    norm = paddle.sqrt(paddle.add_n([_squared_l2_norm(gradient) for gradient in gradients]).sum())
    # max_norm / maximum(norm, max_norm) is NaN if the norm is; minimum(1, max_norm / norm) may hide a NaN.
    if loss_scale is not None:
        norm = norm / loss_scale
    scale = max_norm / paddle.maximum(norm, paddle.full_like(norm, max_norm))
    if loss_scale is not None:
        scale = scale / loss_scale
    return [gradient * scale for gradient in gradients], norm


def adamw(
    settings: OptimizerConfig, rate: Callable[[int], float]
) -> tuple[paddle.optimizer.AdamW, paddle.optimizer.lr.LRScheduler]:
    """Return the optimizer, and the schedule that sets its learning rate to `rate(step)`."""
    schedule = paddle.optimizer.lr.LambdaDecay(1.0, rate)
    optimizer = paddle.optimizer.AdamW(
        schedule,
        beta1=settings.beta1,
        beta2=settings.beta2,
        epsilon=settings.epsilon,
        weight_decay=settings.weight_decay,
        apply_decay_param_fun=is_decayed,
    )
    return optimizer, schedule


def scale_rates(parameters: list[paddle.Tensor], rate_scale: Callable[[str], float]) -> None:
    """Multiply the learning rate of each parameter by rate_scale(name), for layer-wise decay.

    Call it before the optimizer's operations are added. Paddle's AdamW has an argument `lr_ratio` for this, which
    3.3.1 refuses on a CPU; the attribute set here works on every device.
    """
    for parameter in parameters:
        parameter.optimize_attr = {"learning_rate": rate_scale(parameter.name)}
