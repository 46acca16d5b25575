"""Every setting, its meaning and its default; nothing else in the project holds a default.

`model`, `data`, `objective`, `generator`, `optimizer` and `seed` decide what a run computes: with the corpus they make
up its identity, which a checkpoint carries and a resume must match. `paths` and `trainer` cannot change a result.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ernie_gram.model.config import GeneratorConfig, ModelConfig, require, require_finite
from reader.corpus.memmap import CorpusInfo


@dataclass(frozen=True)
class DataConfig:
    """How training sequences are drawn from the corpus.

    Attributes:
        max_seq_len: most tokens in a sequence before masking, [CLS] and [SEP] included.
        pack_documents: let a sequence go on into the next documents until it is full, instead of ending with its own;
            for a corpus of documents that are far shorter than max_seq_len.
        batch_size: sequences in a step, over all processes together.
    """

    max_seq_len: int = 512
    pack_documents: bool = False
    batch_size: int = 256

    def __post_init__(self) -> None:
        require(self.max_seq_len >= 4, "data.max_seq_len", "must be at least 4")
        require(self.batch_size > 0, "data.batch_size", "must be positive")


@dataclass(frozen=True)
class ObjectiveConfig:
    """What is masked and what is predicted (paper, section 3).

    The loss is the weighted sum of its terms, each the mean over what it predicts; a weight of 0 leaves a term out,
    and what only it needs. The paper's ablations are single terms left out, see conf/ablation.

    Attributes:
        masking: "explicit": a masked n-gram is one [MASK], its identity is predicted (section 3.2);
            "contiguous": each of its tokens is a [MASK], and each token is predicted (section 3.1, the baseline).
        mask_fraction: share of the units of a sequence that is masked.
        coarse_weight: of predicting the identity of each masked unit; explicit masking only, which needs it.
        fine_weight: of predicting the tokens of each masked unit: by query rows [M1]..[Mk] under explicit masking
            (section 3.3), at the [MASK]s themselves under contiguous masking, which needs it.
        generator_weight: of a small generator's own prediction of the masked units. One sample from it stands in
            each masked slot that the main model reads (section 3.4).
        rtd_weight: of telling the generator's replacements from original units (section 3.4).
        output_bias: what the biases of the output start from: "frequency", the logarithm of each class's share of
            the corpus, so that no step is spent on learning it; or "zero".
    """

    masking: Literal["explicit", "contiguous"] = "explicit"
    mask_fraction: float = 0.15
    coarse_weight: float = 1.0
    fine_weight: float = 1.0
    generator_weight: float = 1.0
    rtd_weight: float = 1.0
    output_bias: Literal["frequency", "zero"] = "frequency"

    def __post_init__(self) -> None:
        require_finite(self, "objective")
        for key in ("coarse_weight", "fine_weight", "generator_weight", "rtd_weight"):
            require(getattr(self, key) >= 0, f"objective.{key}", "must not be negative")
        if self.is_explicit:
            require(self.coarse_weight > 0, "objective.coarse_weight", "must be positive under explicit masking")
            require(
                self.generator_weight > 0 or self.rtd_weight == 0,
                "objective.rtd_weight",
                "nothing is replaced without a generator: set objective.generator_weight, or this to 0",
            )
        else:
            require(self.fine_weight > 0, "objective.fine_weight", "must be positive under contiguous masking")
            for key in ("coarse_weight", "generator_weight", "rtd_weight"):
                require(getattr(self, key) == 0, f"objective.{key}", "must be 0 under contiguous masking")
        require(0 < self.mask_fraction < 1, "objective.mask_fraction", "must lie between 0 and 1")

    @property
    def is_explicit(self) -> bool:
        """Whether a masked unit leaves a single [MASK]."""
        return self.masking == "explicit"

    @property
    def has_queries(self) -> bool:
        """Whether query rows ask for the tokens of masked units."""
        return self.is_explicit and self.fine_weight > 0

    @property
    def has_generator(self) -> bool:
        """Whether the main model reads a generator's samples instead of [MASK]s."""
        return self.generator_weight > 0


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with linear warm-up and linear decay (paper, appendix A).

    Attributes:
        learning_rate: peak, reached at the end of the warm-up.
        warmup_steps: steps over which the learning rate rises from 0.
        decay_steps: step at which it is back at 0; null takes trainer.max_steps. Set it if a run is to be
            prolonged later: it is part of the run's identity.
        beta1: decay of Adam's first moment.
        beta2: decay of Adam's second moment.
        epsilon: Adam's.
        weight_decay: decoupled decay of the matrices and tables; LayerNorm and biases are left alone.
        max_grad_norm: the gradient of all parameters together is scaled down to this norm.
        precision: "float32", or "bfloat16" for matrix products with float32 weights, softmax and losses.
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
class PathsConfig:
    """Where things are.

    Attributes:
        corpus: folder made by `python -m reader.build corpus`; must be given.
        held_out: another one, to evaluate on, made with the same vocabulary and, unless masking is contiguous, the
            same lexicon; null for none.
        output: folder of the run, for checkpoints, logs and the resolved config; must be given.
    """

    corpus: str = ""
    held_out: str | None = None
    output: str = ""


@dataclass(frozen=True)
class TrainerConfig:
    """How long to train, what to report and what to keep.

    Attributes:
        max_steps: optimizer steps in all.
        log_every: steps between lines of the log.
        eval_every: steps between evaluations on paths.held_out; there is always one before the first step and
            one after the last.
        eval_sequences: most held-out sequences to evaluate.
        save_every: steps between checkpoints; there is always one at the end.
        keep_checkpoints: how many of the newest are kept.
        resume: "auto" goes on from the newest checkpoint in paths.output, if there is one; "never" refuses a
            folder that has any; the path of a checkpoint goes on from that one (once: newer ones are removed).
        workers: threads that prepare batches, in each process.
        device: "auto" takes the GPU where Paddle has one.
        visualdl: also write the curves for VisualDL, to paths.output/visualdl.
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

    def __post_init__(self) -> None:
        for key in ("max_steps", "log_every", "eval_every", "eval_sequences", "save_every", "keep_checkpoints"):
            require(getattr(self, key) > 0, f"trainer.{key}", "must be positive")
        require(self.workers > 0, "trainer.workers", "must be positive")


@dataclass(frozen=True)
class PretrainConfig:
    """A pre-training run.

    Attributes:
        seed: of the start values, the masks, the order of the sequences and the dropout.
        model: the encoder and its heads.
        data: how sequences are drawn.
        objective: what is masked and predicted.
        generator: the small model whose samples replace what is masked; used if objective.generator_weight is set.
        optimizer: how parameters are updated.
        paths: where things are.
        trainer: how long, how often, how much is kept.
    """

    seed: int = 1
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)

    def __post_init__(self) -> None:
        require(0 <= self.seed < 1 << 31, "seed", "must lie in [0, 2^31)")
        require(
            self.data.max_seq_len <= self.model.max_position_embeddings,
            "data.max_seq_len",
            f"{self.data.max_seq_len} exceeds model.max_position_embeddings {self.model.max_position_embeddings}",
        )
        require(
            self.decay_steps >= self.trainer.max_steps,
            "optimizer.decay_steps",
            f"{self.decay_steps} is before trainer.max_steps {self.trainer.max_steps}: the rest would learn nothing",
        )
        require(
            self.optimizer.warmup_steps < self.decay_steps,
            "optimizer.warmup_steps",
            f"{self.optimizer.warmup_steps} leaves no step to decay over: the rate is back at 0 by step "
            f"{self.decay_steps} (optimizer.decay_steps, or else trainer.max_steps)",
        )

    @property
    def decay_steps(self) -> int:
        """The step at which the learning rate is back at 0."""
        return self.optimizer.decay_steps or self.trainer.max_steps

    def identity(self, corpus: CorpusInfo) -> dict[str, Any]:
        """All that can change a result, as flat `section.key: value`."""
        made = {"corpus": corpus.fingerprint, "vocabulary": corpus.vocabulary, "lexicon": corpus.lexicon}
        flat: dict[str, Any] = {"seed": self.seed, **made}
        for section in ("model", "data", "objective", "generator", "optimizer"):
            for key, value in asdict(getattr(self, section)).items():
                flat[f"{section}.{key}"] = value
        flat["optimizer.decay_steps"] = self.decay_steps
        return flat


def identity_differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between two identities, one `key: value before, value now` each."""
    keys = sorted(before.keys() | now.keys())
    return [f"{key}: {before.get(key)} there, {now.get(key)} here" for key in keys if before.get(key) != now.get(key)]
