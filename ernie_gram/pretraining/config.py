"""The configuration of a pre-training run. Config dataclasses are the only place where defaults are defined.

`model`, `data`, `objective`, `generator`, `optimizer` and `seed` can change the result of a run. Together with the
corpus and the given model of a warm start they are its identity, which is stored in each checkpoint and must match when
a run resumes. Other `paths` cannot change the result. `trainer.micro_batch` and the number of processes decide how a
batch is divided: another division rounds differently and draws other random numbers for dropout and sampling. Both may
change when a run resumes, because the machines may change. The rest of `trainer` cannot change the result.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from ernie_gram.config import require, require_finite, require_positive
from ernie_gram.config.loading import config_from_tree, flatten
from ernie_gram.formats.heads import PREDICTION_SECTIONS, is_explicit
from ernie_gram.formats.model import ModelRecord
from ernie_gram.model.config import ModelConfig
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from reader.batches.sampler import largest_micro_batch
from reader.batches.sequences import CUT_VERSION
from reader.corpus.memmap import CorpusInfo
from reader.errors import InputError, counted


@dataclass(frozen=True)
class DataConfig:
    """How sequences are cut from the corpus, and how many make a batch.

    Attributes:
        max_seq_len: maximum number of tokens in a sequence before masking, including [CLS] and [SEP].
        pack_documents: fill a sequence with several documents instead of ending it with its document; for a corpus
            whose documents are much shorter than max_seq_len.
        batch_size: sequences per step, over all processes.
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

    The loss is the weighted sum of its terms; each term is the mean over its predictions. A weight of 0 removes a term
    and the parts of the network that only this term needs. The paper's ablations remove single terms, see
    conf/ablation.

    Attributes:
        masking: "explicit" replaces a masked n-gram by one [MASK] and predicts its identity (section 3.2); "contiguous"
            replaces each of its tokens by a [MASK] and predicts each token (section 3.1, the baseline).
        mask_fraction: fraction of the units of a sequence that are masked.
        explicit_weight: weight of predicting the identity of each masked unit (section 3.2); required for explicit
            masking.
        contiguous_weight: weight of predicting the tokens of each masked unit at its [MASK]s (section 3.1); required
            for contiguous masking, under which all other weights must be 0.
        comprehensive_weight: weight of predicting the tokens of each explicitly masked unit with query rows [M1]..[Mk]
            (section 3.3).
        generator_weight: weight of the loss of a small generator that predicts the masked units. If positive, the main
            model reads a sample from the generator in each masked slot (section 3.4).
        rtd_weight: weight of replaced token detection (section 3.4).
        output_bias: start values of the output biases: "frequency", the logarithm of the frequency of each class in the
            training corpus, so that the model does not have to learn it; or "zero". Those of a head that the model in
            paths.start has are kept, and those of n-grams are on the same scale.
    """

    masking: Literal["explicit", "contiguous"] = "explicit"
    mask_fraction: float = 0.15
    explicit_weight: float = 1.0
    contiguous_weight: float = 0.0
    comprehensive_weight: float = 1.0
    generator_weight: float = 1.0
    rtd_weight: float = 1.0
    output_bias: Literal["frequency", "zero"] = "frequency"

    def __post_init__(self) -> None:
        require_finite(self, "objective")
        for key in _term_weights():
            require(getattr(self, key) >= 0, f"objective.{key}", "must not be negative")
        needed = f"{self.masking}_weight"
        require(getattr(self, needed) > 0, f"objective.{needed}", f"must be positive under {self.masking} masking")
        for key in ("contiguous_weight",) if self.is_explicit else _term_weights():
            is_zero = key == needed or getattr(self, key) == 0
            require(is_zero, f"objective.{key}", f"must be 0 under {self.masking} masking")
        require(
            self.generator_weight > 0 or self.rtd_weight == 0,
            "objective.rtd_weight",
            "nothing is replaced without a generator: set objective.generator_weight, or this to 0",
        )
        require(0 < self.mask_fraction < 1, "objective.mask_fraction", "must lie between 0 and 1")

    @property
    def is_explicit(self) -> bool:
        """Whether a masked unit becomes a single [MASK]."""
        return self.masking == "explicit"

    @property
    def has_queries(self) -> bool:
        """Whether query rows predict the tokens of masked units."""
        return self.comprehensive_weight > 0

    @property
    def has_generator(self) -> bool:
        """Whether the main model reads samples of a generator instead of [MASK]s."""
        return self.generator_weight > 0


def _term_weights() -> list[str]:
    """Return the keys of the weights of the terms, in order."""
    return [each.name for each in fields(ObjectiveConfig) if each.name.endswith("_weight")]


@dataclass(frozen=True)
class GeneratorConfig:
    """The small encoder that proposes replacements (paper, section 3.4). Other settings are those of the main model.

    The paper says only that its hidden size is a third; here that follows from a third of the heads, each as wide.
    Its feed-forward networks are as wide in proportion to its hidden size as those of the main model. If
    model.relative_position_start is "zero", as at a warm start from a model without this bias, its own bias starts from
    "distance": its weights are drawn, and without a bias they hardly learn in thousands of steps.

    Attributes:
        num_hidden_layers: number of layers; null means as many as the main model has.
        num_attention_heads: number of heads, each as wide as in the main model; null means a third as many, at least 1.
        share_embeddings: read the main model's token embeddings through a projection, and predict with its output
            table; otherwise the generator has its own tables.
        temperature: t of the samples, which are drawn from p^(1/t), normalized; 1 draws from the generator's own
            distribution, as in the paper. Below 1, more samples are the generator's best guess; from 0.2 to 5.
    """

    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    share_embeddings: bool = True
    temperature: float = 1.0

    def __post_init__(self) -> None:
        # Below 0.2, the probability of the best of 330,522 classes can underflow.
        require(0.2 <= self.temperature <= 5, "generator.temperature", "must lie between 0.2 and 5")
        require_positive(self, "generator", "num_hidden_layers", "num_attention_heads")

    def model(self, main: ModelConfig) -> ModelConfig:
        """Return the configuration of the generator's encoder for a given main model."""
        heads = self.num_attention_heads or max(1, main.num_attention_heads // 3)
        width = main.hidden_size // main.num_attention_heads
        layers = self.num_hidden_layers or main.num_hidden_layers
        inner = main.intermediate_size and max(1, main.intermediate_size * heads // main.num_attention_heads)
        start = main.relative_position_start
        return replace(
            main,
            hidden_size=heads * width,
            emb_size=None,
            intermediate_size=inner,
            num_attention_heads=heads,
            num_hidden_layers=layers,
            relative_position_start="distance" if start == "zero" else start,
        )


@dataclass(frozen=True)
class PathsConfig:
    """Folders of a run.

    Attributes:
        corpus: the training corpus, made by `ernie-gram corpus`; required.
        held_out: a corpus for evaluation, made with the same vocabulary and, unless masking is contiguous, the same
            lexicon; null means no evaluation.
        output: folder of the run, for checkpoints, logs and the resolved configuration; required.
        start: a model folder or a run to take start values from (warm start); null means to draw them. Its vocabulary
            must be that of the corpus. Keys of `model` that are not given are taken from it. Its digest is part of the
            run's identity, so keep the folder until the run has ended: a resume needs it too.
    """

    corpus: str = ""
    held_out: str | None = None
    output: str = ""
    start: str | None = None


@dataclass(frozen=True)
class PretrainConfig:
    """A pre-training run.

    Attributes:
        seed: random seed for drawn parameters, masks, the order of sequences, dropout and sampling.
        model: the encoder and its heads.
        data: sequences and batches.
        objective: what is masked and predicted.
        generator: the small model whose samples replace masked units; used if objective.generator_weight is positive.
        optimizer: how parameters are updated.
        paths: folders.
        trainer: length, logging, evaluation and checkpoints.
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
        # With paths.start, the positions are those of the given model: see warm_start.py.
        require(
            self.paths.start is not None or self.data.max_seq_len <= self.model.max_position_embeddings,
            "data.max_seq_len",
            f"{self.data.max_seq_len} exceeds model.max_position_embeddings {self.model.max_position_embeddings}; give "
            f"--data.max_seq_len {self.model.max_position_embeddings}, or a model with more positions",
        )
        require(
            self.decay_steps >= self.trainer.max_steps,
            "optimizer.decay_steps",
            f"{self.decay_steps} is before trainer.max_steps {self.trainer.max_steps}; give that or more, or null",
        )
        require(
            self.optimizer.warmup_steps < self.decay_steps,
            "optimizer.warmup_steps",
            f"{self.optimizer.warmup_steps} is not before step {self.decay_steps}, at which the rate is back at 0",
        )

    @property
    def decay_steps(self) -> int:
        """The step at which the learning rate reaches 0."""
        return self.optimizer.decay_steps or self.trainer.max_steps

    def largest_micro_batch(self, processes: int) -> int:
        """Return the largest number of sequences that one of `processes` processes holds at a time in training."""
        return largest_micro_batch(self.data.batch_size, processes, self.trainer.micro_batch)

    def check_processes(self, processes: int) -> None:
        """Raise InputError if a batch has fewer sequences than there are processes."""
        reason = f"{processes} processes, but only {counted(self.data.batch_size, 'sequence')} in a batch"
        require(processes <= self.data.batch_size, "data.batch_size", f"{reason}; use fewer processes")

    def assumed_rows(self, processes: int) -> int:
        """Return how many masked slots one of `processes` processes holds, for full sequences without n-grams."""
        rows = self.largest_micro_batch(processes) * self.data.max_seq_len * self.objective.mask_fraction
        return int(rows) + 1

    def identity(self, corpus: CorpusInfo, start: str | None = None) -> dict[str, Any]:
        """Return everything that can change the result of a run, as flat `section.key: value`.

        `start` is the digest of the model in paths.start, or None without one; the path itself cannot change a result.
        "data.cut" is not a setting: it is the version of the code that decides where sequences start and end.
        """
        made = {"corpus": corpus.fingerprint, "vocabulary": corpus.vocabulary, "lexicon": corpus.lexicon}
        flat: dict[str, Any] = {"seed": self.seed, "paths.start": start, **made}
        sections = ("model", "data", "objective", "generator", "optimizer")
        flat |= flatten({section: asdict(getattr(self, section)) for section in sections})
        flat["optimizer.decay_steps"] = self.decay_steps
        flat["data.cut"] = CUT_VERSION
        return flat


def prediction_config(model: ModelRecord) -> PretrainConfig:
    """Return the configuration that the prediction heads of a model belong to.

    Sections that say nothing about predictions have their defaults. Weights of earlier versions are read with their new
    names, and settings that were removed since are left out.

    Raises InputError if the model has no heads, or if its settings are invalid.
    """
    kept, source = model.pretraining, str(model.source)
    if kept is None:
        raise InputError(f"{source}: the model has no prediction heads; choose another model")
    objective, fine = kept.get("objective", {}), "comprehensive" if is_explicit(kept) else "contiguous"
    renamed = {"coarse_weight": "explicit_weight", "fine_weight": f"{fine}_weight"}
    weights = {"comprehensive_weight": 0.0} if "fine_weight" in objective else {}
    weights |= {renamed.get(key, key): value for key, value in objective.items() if key != "ngram_start"}
    sections = {key: kept[key] for key in PREDICTION_SECTIONS if key in kept}
    return config_from_tree(PretrainConfig, sections | {"objective": weights, "model": asdict(model.config)}, source)


def max_tokens(model: ModelRecord) -> int:
    """Return the maximum number of tokens of a text, [CLS] and [SEP] included."""
    if model.pretraining is None:
        return model.config.max_position_embeddings
    # Positions beyond the length of the sequences of pre-training have embeddings, but these were never trained.
    return prediction_config(model).data.max_seq_len
