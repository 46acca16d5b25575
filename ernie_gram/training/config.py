"""The sections of a configuration that every training has: optimizer and trainer."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from ernie_gram.config import require, require_finite, require_positive

# The defaults of Paddle's GradScaler; the paper has no values.
FLOAT16_LOSS_SCALE = 2.0**16
LOSS_SCALE_STEPS = 2000


@dataclass(frozen=True)
class AdamWConfig:
    """AdamW, for pre-training and fine-tuning.

    Attributes:
        learning_rate: peak learning rate, reached at the end of the warm-up.
        beta1: decay rate of Adam's first moment.
        beta2: decay rate of Adam's second moment.
        epsilon: Adam's epsilon.
        weight_decay: decoupled weight decay of matrices and embeddings; LayerNorm and biases do not decay.
        max_grad_norm: maximum global norm of the gradient; larger gradients are scaled down.
    """

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-6
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        require_finite(self, "optimizer")
        require(self.learning_rate > 0, "optimizer.learning_rate", "must be positive")
        for key in ("beta1", "beta2"):
            require(0 <= getattr(self, key) < 1, f"optimizer.{key}", "must lie in [0, 1)")
        require(self.epsilon > 0, "optimizer.epsilon", "must be positive")
        require(self.weight_decay >= 0, "optimizer.weight_decay", "must not be negative")
        require(self.max_grad_norm > 0, "optimizer.max_grad_norm", "must be positive")


@dataclass(frozen=True)
class OptimizerConfig(AdamWConfig):
    """AdamW with linear warm-up and linear decay (paper, appendix A).

    Attributes:
        warmup_steps: number of steps over which the learning rate rises from 0.
        decay_steps: step at which the learning rate reaches 0; null means trainer.max_steps. It is part of the run's
            identity, so set it if you may want to train longer later.
        precision: "float32"; or, on a GPU, "bfloat16" or "float16" for matrix products and what lies between them, such
            as attention weights, while parameters, residual connections, LayerNorm and losses stay float32. On a CPU
            with AVX512-BF16 or AMX, "bfloat16" rounds the factors of products by the weights of encoder layers, and
            all else stays float32. float16 is for GPUs without bfloat16 (V100).
        loss_scale: factor of the loss in the backward pass of the first step, a power of two. It halves when a gradient
            is not finite, and that update is skipped; it doubles after 2000 updates in a row. null means
            65536 with float16, whose gradients would otherwise underflow, and no scaling with other precisions.
    """

    warmup_steps: int = 10000
    decay_steps: int | None = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    loss_scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.warmup_steps >= 0, "optimizer.warmup_steps", "must not be negative")
        require(self.decay_steps is None or self.decay_steps > 0, "optimizer.decay_steps", "must be positive or null")
        scale = self.loss_scale
        is_power = scale is None or (scale >= 1 and math.frexp(scale)[0] == 0.5)
        require(is_power, "optimizer.loss_scale", "must be a power of two (1, 2, 4, ...) or null")

    @property
    def first_loss_scale(self) -> float | None:
        """The scale of the loss at the first step, or None if it is not scaled."""
        default = FLOAT16_LOSS_SCALE if self.precision == "float16" else None
        return default if self.loss_scale is None else self.loss_scale


@dataclass(frozen=True)
class LoopConfig:
    """Memory, logging, checkpoints and devices, for pre-training and fine-tuning.

    Attributes:
        micro_batch: maximum number of samples (sequences) that one process holds at a time. A larger share of the batch
            is divided into equal micro-batches, whose gradients are added up before the update: less memory, and in
            fine-tuning, which divides by length, less padding. null means no maximum. Like the number of processes, it
            decides which random numbers dropout and sampling draw, but neither the batches nor their masks, so a run
            may be resumed with another value.
        log_every: steps between lines of the log; their losses are means over these steps.
        keep_checkpoints: number of newest checkpoints to keep; the best model of a fine-tuning is kept beside them.
        workers: threads that prepare batches, per process.
        device: "cpu", "gpu", or "auto" for the GPU if Paddle finds one.
        recompute: compute the encoder's layers again in the backward pass instead of keeping what they compute. The
            result is the same, dropout included, on a CPU to the bit; a step needs much less memory, and a third more
            operations.
        visualdl: also write curves for VisualDL to paths.output/visualdl.
        hang_seconds: with several processes, the job ends if one makes no progress for this time; 0 for never. Steps,
            batches of an evaluation and checkpoints are progress, so it must exceed the longest of them, usually the
            first step.
    """

    micro_batch: int | None = None
    log_every: int = 100
    keep_checkpoints: int = 3
    workers: int = 1
    device: Literal["auto", "cpu", "gpu"] = "auto"
    recompute: bool = False
    visualdl: bool = True
    hang_seconds: int = 1800

    def __post_init__(self) -> None:
        require_positive(self, "trainer", "log_every", "keep_checkpoints", "workers", "micro_batch")
        require(self.hang_seconds >= 0, "trainer.hang_seconds", "must not be negative")


@dataclass(frozen=True)
class TrainerConfig(LoopConfig):
    """Length of the training, logging, evaluation and checkpoints.

    Attributes:
        max_steps: total number of optimizer steps.
        max_skipped: with this number of skipped updates in a row (see optimizer.loss_scale) the training stops.
        eval_every: steps between evaluations on paths.held_out; the model is also evaluated before the first step
            and after the last.
        eval_sequences: maximum number of held-out sequences to evaluate, spread evenly over paths.held_out.
        eval_draws: number of a generator's samples over which an evaluation is averaged. Its time is proportional to
            this number. Models without a generator are evaluated once.
        save_every: steps between checkpoints; there is also one after the last step.
        peak_tflops: TFLOP per second that the device of one process reaches in matrix products, such as 15.7 for
            float32 on a V100, for the logged share of it ("mfu"); null logs none.
    """

    max_steps: int = 1_000_000
    max_skipped: int = 20
    eval_every: int = 10_000
    eval_sequences: int = 10_000
    eval_draws: int = 8
    save_every: int = 10_000
    peak_tflops: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_finite(self, "trainer")
        require_positive(self, "trainer", "max_steps", "eval_every", "eval_sequences", "eval_draws", "save_every")
        require_positive(self, "trainer", "max_skipped", "peak_tflops")


def shared_settings(config: AdamWConfig | LoopConfig, shared: type[AdamWConfig | LoopConfig]) -> dict[str, Any]:
    """Return the settings of a section that are those of the record `shared`, by key."""
    return {each.name: getattr(config, each.name) for each in fields(shared)}
