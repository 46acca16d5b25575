"""The loss terms, and how they add up.

A term is a record: its name, its weight, the batch fields it reads, and a function to its loss. Each counts as the
mean over what it predicts in the whole batch, all processes together; the objective is sum of weight x term.

Shape letters: B sequences, L slots, N = B * L, R query rows, M masked slots, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import paddle
from paddle.nn import functional as F

from ernie_gram.model.attention import padding_bias
from ernie_gram.model.encoder import Queries
from ernie_gram.pretraining.chunked_softmax import CrossEntropy, Scores, chunks_for, cross_entropy
from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.network import PretrainModel
from reader.batches import fields
from reader.batches.fields import Field

Feeds = dict[str, paddle.Tensor]


@dataclass(frozen=True)
class Encoded:
    """A batch after the encoders.

    Attributes:
        context: [N, H]; queries: [R, H], or None without query rows.
        generated: the generator's loss and its samples, or None without one.
    """

    context: paddle.Tensor
    queries: paddle.Tensor | None
    generated: CrossEntropy | None


@dataclass(frozen=True)
class Softmax:
    """How softmaxes over the classes are to be computed: for training or not, for about how many rows, in bfloat16?"""

    train: bool
    rows: int
    half: bool = False

    def __call__(self, scores: Scores, labels: paddle.Tensor, sample: bool = False) -> CrossEntropy:
        dtype = paddle.bfloat16 if self.half else paddle.float32
        return cross_entropy(scores, labels, chunks_for(self.rows, scores.classes), self.train, sample, dtype)


@dataclass(frozen=True)
class Loss:
    """The sum of a term's losses and the number of its rows, float32 scalars; for a softmax, its parts too."""

    total: paddle.Tensor
    count: paddle.Tensor
    softmax: CrossEntropy | None = None


@dataclass(frozen=True)
class Term:
    """A part of the objective.

    Attributes:
        name: as logged.
        fields: the batch fields it reads.
        weight: in the sum.
        loss: (model, encoded, feeds, softmax) -> Loss.
    """

    name: str
    fields: tuple[Field, ...]
    weight: float
    loss: Callable[[PretrainModel, Encoded, Feeds, Softmax], Loss]


def _of_softmax(result: CrossEntropy) -> Loss:
    return Loss(result.total, paddle.shape(result.row_loss)[0].astype("float32"), result)


def masked_scores(model: PretrainModel, encoded: Encoded, feeds: Feeds) -> Scores:
    """Scores of every masked slot: over C classes under explicit masking, over F classes under contiguous masking."""
    return model.head(paddle.gather(encoded.context, feeds[fields.SLOTS.name]))


def coarse(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: Softmax) -> Loss:
    """-log p(unit | context) at every masked slot, over C classes (equation 2)."""
    return _of_softmax(softmax(masked_scores(model, encoded, feeds), feeds[fields.COARSE_LABELS.name]))


def token(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: Softmax) -> Loss:
    """-log p(token | context) at every contiguously masked token, over F classes (equation 1)."""
    return _of_softmax(softmax(masked_scores(model, encoded, feeds), feeds[fields.TOKEN_LABELS.name]))


def fine(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: Softmax) -> Loss:
    """-log p(i-th token of the unit | context, [Mi]) at every query row, over F classes (equation 3)."""
    assert model.fine is not None
    assert encoded.queries is not None
    scores = model.fine(paddle.gather(encoded.queries, feeds[fields.FINE_ROWS.name]))
    return _of_softmax(softmax(scores, feeds[fields.FINE_LABELS.name]))


def generator(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: Softmax) -> Loss:
    """The generator's own -log p(unit | context), over C classes (section 3.4)."""
    assert encoded.generated is not None
    return _of_softmax(encoded.generated)


def detection(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: Softmax) -> Loss:
    """Binary cross entropy of "replaced" at every slot that is not padding (section 3.4).

    A sample that happens to be the original unit counts as original.
    """
    assert model.detection is not None
    assert encoded.generated is not None
    assert encoded.generated.sampled is not None
    length = paddle.shape(feeds[fields.INPUT_IDS.name])[1]
    # -log sigmoid(-z) for originals, -log sigmoid(z) for replacements.
    logits_N = model.detection(encoded.context).astype("float32")
    replaced_M = (encoded.generated.sampled != feeds[fields.COARSE_LABELS.name]).astype("float32")
    replaced_N = paddle.scatter(paddle.zeros_like(logits_N), feeds[fields.SLOTS.name], replaced_M)
    real_N = (padding_bias(feeds[fields.LENGTHS.name], length) == 0).astype("float32").flatten()
    loss_N = F.binary_cross_entropy_with_logits(logits_N, replaced_N, reduction="none") * real_N
    return Loss(loss_N.sum(), real_N.sum())


def terms_of(config: ObjectiveConfig) -> list[Term]:
    """The terms a config asks for; the first is the one a model is evaluated by."""
    if not config.is_explicit:
        return [Term("token", (fields.TOKEN_LABELS,), config.fine_weight, token)]
    query_fields = (fields.QUERY_SLOTS, fields.QUERY_RANKS, fields.FINE_ROWS, fields.FINE_LABELS)
    every = [
        Term("coarse", (fields.COARSE_LABELS,), config.coarse_weight, coarse),
        Term("fine", query_fields, config.fine_weight, fine),
        Term("generator", (fields.COARSE_LABELS,), config.generator_weight, generator),
        Term("rtd", (fields.COARSE_LABELS,), config.rtd_weight, detection),
    ]
    return [term for term in every if term.weight]


def softmax_of(config: PretrainConfig, train: bool, ranks: int) -> Softmax:
    """Softmaxes for batches of this config, dealt to `ranks` processes.

    Their number is what full sequences without n-grams would have; it decides into how many chunks rows are cut.
    """
    rows = -(-config.data.batch_size // ranks) * config.data.max_seq_len * config.objective.mask_fraction
    return Softmax(train, int(rows) + 1, config.optimizer.precision == "bfloat16")


def encode(model: PretrainModel, feeds: Feeds, softmax: Softmax) -> Encoded:
    """Run the generator, if there is one, put its samples in the masked slots, and run the encoder.

    Without labels among the feeds, the generator's loss means nothing.
    """
    input_ids, lengths, slots = (feeds[field.name] for field in (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS))
    generated = replacement = queries = None
    if model.generator is not None:
        labels = feeds.get(fields.COARSE_LABELS.name)
        labels = paddle.zeros_like(slots) if labels is None else labels
        generated = softmax(model.generator(input_ids, lengths, slots), labels, sample=True)
        replacement = model.replacement(slots, generated.sampled)
    if fields.QUERY_SLOTS.name in feeds:
        queries = Queries(feeds[fields.QUERY_RANKS.name], feeds[fields.QUERY_SLOTS.name])
    context_NH, queries_RH = model.encoder(input_ids, lengths, replacement=replacement, queries=queries)
    return Encoded(context_NH, queries_RH, generated)
