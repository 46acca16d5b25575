"""The configuration of a fine-tuning. Config dataclasses are the only place where defaults are defined.

The files in conf/tasks state what differs for each task. `task`, `seed`, `max_train_examples`, `input`, `span`,
`head`, `dropout`, `optimizer` and `evaluation` can change the result of a run. Together with the given
model and the files of the task they are its identity, which is stored in each checkpoint and must match when a run
resumes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ernie_gram.config import require, require_positive
from ernie_gram.config.loading import flatten
from ernie_gram.model.config import ModelConfig
from ernie_gram.training.config import AdamWConfig, LoopConfig, OptimizerConfig, TrainerConfig, shared_settings
from tasks.kinds.settings import HeadSettings, InputSettings, KindSettings, SpanSettings


@dataclass(frozen=True)
class FinetunePaths:
    """Files and folders of a run.

    Attributes:
        model: the model to start from: a model folder of any format, a run, or one of its checkpoints; required.
        data: the folder with the official files of the task, or the benchmark's folder above it; by default that in the
            environment variable DATA.
        output: folder of the run, for checkpoints, logs, predictions and result.json; null means output/TASK.
    """

    model: str = ""
    data: str = ""
    output: str | None = None


@dataclass(frozen=True)
class DropoutConfig:
    """Dropout rates of the encoder in training.

    Attributes:
        hidden: after the embeddings and after every sub-layer; null means the rate of the given model.
        attention: of the attention weights; null means the rate of the given model.
    """

    hidden: float | None = None
    attention: float | None = None

    def __post_init__(self) -> None:
        for key in ("hidden", "attention"):
            value = getattr(self, key)
            require(value is None or 0 <= value < 1, f"dropout.{key}", "must lie in [0, 1), or be null")

    def apply(self, model: ModelConfig) -> ModelConfig:
        """Return the settings of a model with these rates."""
        rates = {"hidden_dropout_prob": self.hidden, "attention_probs_dropout_prob": self.attention}
        given: dict[str, Any] = {key: rate for key, rate in rates.items() if rate is not None}
        return replace(model, **given)


@dataclass(frozen=True)
class FinetuneOptimizer(AdamWConfig):
    """AdamW with layer-wise rates (paper, appendix B), linear warm-up and linear decay to 0.

    The learning rate is that of the output layers.

    Attributes:
        batch_size: samples per step, over all processes. A sample is a text or a pair, a question with its options
            (multiple choice), or a window of a long text (span, tagging).
        length_pool: samples are sorted by length within pools of this many batches, which leaves less padding, but
            makes batches less alike; with 1, every batch is drawn at random.
        epochs: how often the training data are read.
        warmup_share: share of all steps over which the learning rate rises from 0.
        layer_decay: factor between the learning rates of neighbouring layers: of L layers, layer i (from 0) has the
            rate layer_decay^(L - i), the embeddings have layer_decay^(L + 1), and the layers above the encoder have 1.
        precision: "float32"; or "bfloat16" for the factors of matrix products, and on a GPU also for what lies between
            two products (see docs/cluster.md). A CPU needs AVX512-BF16 or AMX for it.
    """

    learning_rate: float = 5e-5
    beta2: float = 0.999
    batch_size: int = 32
    length_pool: int = 1
    epochs: int = 3
    warmup_share: float = 0.1
    layer_decay: float = 0.8
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "optimizer", "batch_size", "length_pool", "epochs")
        require(0 <= self.warmup_share < 1, "optimizer.warmup_share", "must lie in [0, 1)")
        require(0 < self.layer_decay <= 1, "optimizer.layer_decay", "must lie in (0, 1]; 1 means equal rates")

    def for_steps(self, max_steps: int) -> OptimizerConfig:
        """Return the settings of the training loop for a run of `max_steps` steps."""
        warmup_steps, shared = int(self.warmup_share * max_steps), shared_settings(self, AdamWConfig)
        return OptimizerConfig(**shared, warmup_steps=warmup_steps, decay_steps=max_steps, precision=self.precision)


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation on the labelled dev splits, and what follows from it.

    Attributes:
        every: steps between evaluations; null means after each epoch. There is also one after the last step.
        batch_size: samples per batch; it does not depend on the number of processes, and neither do the predictions.
        choose: "best" makes the predictions with the model of the best evaluation, by the main score of the task's
            metric on the first dev split; "last" with that of the last step.
    """

    every: int | None = None
    batch_size: int = 32
    choose: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        require_positive(self, "evaluation", "batch_size", "every")


@dataclass(frozen=True)
class FinetuneTrainer(LoopConfig):
    """Memory, logging, checkpoints and devices.

    Attributes:
        save_every: steps between checkpoints; null means after each epoch. There is also one after the last step.
    """

    log_every: int = 50
    keep_checkpoints: int = 1
    visualdl: bool = False
    save_every: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "trainer", "save_every")

    def for_steps(self, max_steps: int, epoch_steps: int, eval_every: int | None) -> TrainerConfig:
        """Return the settings of the training loop for a run of `max_steps` steps."""
        eval_every, save_every = eval_every or epoch_steps, self.save_every or epoch_steps
        shared = shared_settings(self, LoopConfig)
        return TrainerConfig(**shared, max_steps=max_steps, eval_every=eval_every, save_every=save_every)


@dataclass(frozen=True)
class FinetuneConfig:
    """A fine-tuning of a model on a task.

    Attributes:
        task: the name of a task (`ernie-gram tasks` shows all), or the .yaml file of a custom task; required.
        seed: random seed of the initial output layers, the order of samples and dropout.
        on_bad_row: "error" stops at the first row that is wrong; "skip" leaves such rows out and lists them.
        max_train_examples: train on at most this number of examples, spread evenly over the training files and the same
            ones with every seed; null means all.
        input: how examples become inputs.
        span: how answers are trained and found (span tasks).
        head: the layers between the encoder and the scores.
        dropout: dropout rates of the encoder.
        optimizer: how parameters are updated, and for how long.
        evaluation: when the model is evaluated, and which model is kept.
        paths: files and folders.
        trainer: logging, checkpoints and devices.
    """

    task: str = ""
    seed: int = 1
    on_bad_row: Literal["error", "skip"] = "error"
    max_train_examples: int | None = None
    input: InputSettings = field(default_factory=InputSettings)
    span: SpanSettings = field(default_factory=SpanSettings)
    head: HeadSettings = field(default_factory=HeadSettings)
    dropout: DropoutConfig = field(default_factory=DropoutConfig)
    optimizer: FinetuneOptimizer = field(default_factory=FinetuneOptimizer)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    paths: FinetunePaths = field(default_factory=FinetunePaths)
    trainer: FinetuneTrainer = field(default_factory=FinetuneTrainer)

    def __post_init__(self) -> None:
        require(0 <= self.seed < 1 << 31, "seed", "must lie in [0, 2^31)")
        limit = self.max_train_examples
        require(limit is None or limit > 0, "max_train_examples", "must be positive, or null for all examples")

    @property
    def kind_settings(self) -> KindSettings:
        """The settings of the kind of task."""
        return KindSettings(self.input, self.span, self.head)

    def identity(self) -> dict[str, Any]:
        """Return the settings that can change the result of a run, as flat `section.key: value`."""
        flat: dict[str, Any] = {"seed": self.seed, "max_train_examples": self.max_train_examples}
        sections = ("input", "span", "head", "dropout", "optimizer", "evaluation")
        return flat | flatten({section: asdict(getattr(self, section)) for section in sections})
