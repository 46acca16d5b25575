"""The sections of a configuration that every training has: optimizer and trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ernie_gram.config.checks import require, require_finite


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with linear warm-up and linear decay (paper, appendix A).

    Attributes:
        learning_rate: peak learning rate, reached at the end of the warm-up.
        warmup_steps: number of steps over which the learning rate rises from 0.
        decay_steps: step at which the learning rate reaches 0; null means trainer.max_steps. It is part of the run's
            identity, so set it if you may want to train longer later.
        beta1: decay rate of Adam's first moment.
        beta2: decay rate of Adam's second moment.
        epsilon: Adam's epsilon.
        weight_decay: decoupled weight decay of matrices and embeddings; LayerNorm and biases do not decay.
        max_grad_norm: maximum global norm of the gradient; larger gradients are scaled down.
        precision: "float32"; or "bfloat16" for matrix products, while weights, softmax and losses stay float32.
    """

    learning_rate: float = 1e-4
    warmup_steps: int = 10000
    decay_steps: int | None = None
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-6
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        require_finite(self, "optimizer")
        require(self.learning_rate > 0, "optimizer.learning_rate", "must be positive")
        require(self.warmup_steps >= 0, "optimizer.warmup_steps", "must not be negative")
        require(self.decay_steps is None or self.decay_steps > 0, "optimizer.decay_steps", "must be positive or null")
        for key in ("beta1", "beta2"):
            require(0 <= getattr(self, key) < 1, f"optimizer.{key}", "must lie in [0, 1)")
        require(self.epsilon > 0, "optimizer.epsilon", "must be positive")
        require(self.weight_decay >= 0, "optimizer.weight_decay", "must not be negative")
        require(self.max_grad_norm > 0, "optimizer.max_grad_norm", "must be positive")


@dataclass(frozen=True)
class TrainerConfig:
    """Length of the training, logging, evaluation and checkpoints.

    Attributes:
        max_steps: total number of optimizer steps.
        log_every: steps between lines of the log.
        eval_every: steps between evaluations on paths.held_out; the model is also evaluated before the first step
            and after the last.
        eval_sequences: maximum number of held-out sequences to evaluate, spread evenly over paths.held_out.
        save_every: steps between checkpoints; there is also one after the last step.
        keep_checkpoints: number of newest checkpoints to keep.
        resume: "auto" continues from the newest checkpoint in paths.output, if there is one; "never" refuses a folder
            that has checkpoints; the path of a checkpoint continues from that one and removes newer ones.
        workers: threads that prepare batches, per process.
        device: "cpu", "gpu", or "auto" for the GPU if Paddle finds one.
        visualdl: also write curves for VisualDL to paths.output/visualdl.
        hang_seconds: with several processes, the launcher ends the job if one makes no progress for this time; 0 for
            never. Steps, batches of an evaluation and checkpoints are progress, so it must exceed the longest of them,
            and the time that the first step takes longer.
    """

    max_steps: int = 1_000_000
    log_every: int = 100
    eval_every: int = 10_000
    eval_sequences: int = 10_000
    save_every: int = 10_000
    keep_checkpoints: int = 3
    resume: str = "auto"
    workers: int = 1
    device: Literal["auto", "cpu", "gpu"] = "auto"
    visualdl: bool = True
    hang_seconds: int = 1800

    def __post_init__(self) -> None:
        for key in ("max_steps", "log_every", "eval_every", "eval_sequences", "save_every", "keep_checkpoints"):
            require(getattr(self, key) > 0, f"trainer.{key}", "must be positive")
        require(self.workers > 0, "trainer.workers", "must be positive")
        require(self.hang_seconds >= 0, "trainer.hang_seconds", "must not be negative")
