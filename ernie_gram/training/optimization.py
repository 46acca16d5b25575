"""AdamW as the paper uses it: linear warm-up and decay, decay of matrices only, clipping by global norm."""

from __future__ import annotations

import paddle
from paddle.nn.clip import _squared_l2_norm

from ernie_gram.pretraining.config import PretrainConfig


def learning_rate(step: int, config: PretrainConfig) -> float:
    """Rate of the update that follows `step` updates: up to the peak over the warm-up, then down to 0, linearly."""
    settings, last = config.optimizer, config.decay_steps
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    return settings.learning_rate * max(0, last - step) / (last - settings.warmup_steps)


def is_decayed(name: str) -> bool:
    """Whether weight decay applies: to matrices and tables, not to LayerNorm and biases.

    Upstream's code has it the wrong way round.
    """
    return not (name.endswith((".b_0", "_bias")) or "layer_norm" in name)


def clip_by_global_norm(gradients: list[paddle.Tensor], most: float) -> tuple[list[paddle.Tensor], paddle.Tensor]:
    """Scale gradients so that their norm together is at most `most`; also returns the norm they had."""
    # Paddle's own operation for it: gradient * gradient would be a tensor of the gradient's size, flattening it too.
    norm = paddle.sqrt(paddle.add_n([_squared_l2_norm(gradient) for gradient in gradients]).sum())
    # minimum(1, NaN) might hide a NaN; most / maximum(norm, most) keeps it.
    scale = most / paddle.maximum(norm, paddle.full_like(norm, most))
    return [gradient * scale for gradient in gradients], norm


def adamw(config: PretrainConfig) -> tuple[paddle.optimizer.AdamW, paddle.optimizer.lr.LRScheduler]:
    """The optimizer and the schedule that drives its learning rate."""
    settings = config.optimizer
    schedule = paddle.optimizer.lr.LambdaDecay(1.0, lambda step: learning_rate(step, config))
    optimizer = paddle.optimizer.AdamW(
        schedule,
        beta1=settings.beta1,
        beta2=settings.beta2,
        epsilon=settings.epsilon,
        weight_decay=settings.weight_decay,
        apply_decay_param_fun=is_decayed,
    )
    return optimizer, schedule
