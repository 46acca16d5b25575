"""The loss terms of pre-training (paper, section 3), and the batch that they read, encoded.

A term is a record: its name, its weight, the batch fields that it needs, and a function that returns its loss. Each
term counts as the mean over what it predicts in the whole batch, over all processes; the objective is the sum of
weight x term. (Equations 5 and 6 of the paper are sums over positions.)

Shape letters: B sequences, L slots, N = B * L, R query rows, M masked slots, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import paddle
from paddle.nn import functional as F

from ernie_gram.model.attention import padding_bias
from ernie_gram.model.encoder import QueryRows
from ernie_gram.pretraining.chunked_softmax import CrossEntropy, LazyLogits, chunks_for, cross_entropy
from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.network import PretrainModel
from reader.batches import fields
from reader.batches.fields import Batch, Field

Feeds = dict[str, paddle.Tensor]


@dataclass(frozen=True)
class Encoded:
    """A batch after the encoders.

    Attributes:
        context: [N, H].
        queries: [R, H], or None without query rows.
        generated: the generator's loss and its samples, or None without a generator.
    """

    context: paddle.Tensor
    queries: paddle.Tensor | None
    generated: CrossEntropy | None


@dataclass(frozen=True)
class SoftmaxOptions:
    """How the softmaxes over the classes are computed.

    Attributes:
        train: whether gradients are needed.
        rows: approximate number of rows, which decides the number of chunks.
        precision: of matrix products, "float32", "bfloat16" or "float16". In float16 a probability below 3e-8 counts as
            0 in gradients.
    """

    train: bool
    rows: int
    precision: str = "float32"

    def cross_entropy(self, logits: LazyLogits, labels: paddle.Tensor, sample: bool = False) -> CrossEntropy:
        """Return the cross entropy of some rows, and one sample per row if asked for."""
        dtype = getattr(paddle, self.precision)
        return cross_entropy(logits, labels, chunks_for(self.rows, logits.classes), self.train, sample, dtype)


@dataclass(frozen=True)
class Loss:
    """The sum of a term's losses and its number of rows, float32 scalars; `softmax` holds the losses by row."""

    total: paddle.Tensor
    count: paddle.Tensor
    softmax: CrossEntropy | None = None


@dataclass(frozen=True)
class Term:
    """A term of the objective.

    Attributes:
        name: as logged.
        fields: the batch fields it reads.
        weight: its factor in the objective.
        loss: (model, encoded, feeds, softmax) -> Loss.
        num_rows: batch -> the number of rows that its loss counts.
    """

    name: str
    fields: tuple[Field, ...]
    weight: float
    loss: Callable[[PretrainModel, Encoded, Feeds, SoftmaxOptions], Loss]
    num_rows: Callable[[Batch], int]


def _length_of(field: Field) -> Callable[[Batch], int]:
    return lambda batch: len(batch[field.name])


def _real_slots(batch: Batch) -> int:
    return int(batch[fields.LENGTHS.name].sum())


def _softmax_loss(result: CrossEntropy) -> Loss:
    return Loss(result.total, paddle.shape(result.row_loss)[0].astype("float32"), result)


def masked_logits(model: PretrainModel, encoded: Encoded, feeds: Feeds) -> LazyLogits:
    """Return logits of every masked slot: over C classes under explicit masking, over F under contiguous masking."""
    return model.head(paddle.gather(encoded.context, feeds[fields.SLOTS.name]))


def contiguous_mlm_loss(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: SoftmaxOptions) -> Loss:
    """-log p(x | z_\\M) of every contiguously masked token, over F classes (equation 1)."""
    logits = masked_logits(model, encoded, feeds)
    return _softmax_loss(softmax.cross_entropy(logits, feeds[fields.TOKEN_LABELS.name]))


def explicit_ngram_loss(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: SoftmaxOptions) -> Loss:
    """-log p(y | context) of the unit at every masked slot, over C classes (equation 2; first sum of equation 3)."""
    logits = masked_logits(model, encoded, feeds)
    return _softmax_loss(softmax.cross_entropy(logits, feeds[fields.COARSE_LABELS.name]))


def comprehensive_loss(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: SoftmaxOptions) -> Loss:
    """-log p(x_i | context, [Mi]) of the i-th token of each masked unit, over F classes (second sum of equation 3)."""
    assert model.fine is not None
    assert encoded.queries is not None
    logits = model.fine(paddle.gather(encoded.queries, feeds[fields.FINE_ROWS.name]))
    return _softmax_loss(softmax.cross_entropy(logits, feeds[fields.FINE_LABELS.name]))


def generator_loss(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: SoftmaxOptions) -> Loss:
    """The generator's -log p(y | context) of the unit at every masked slot, over C classes (equation 5, first term)."""
    assert encoded.generated is not None
    return _softmax_loss(encoded.generated)


def rtd_loss(model: PretrainModel, encoded: Encoded, feeds: Feeds, softmax: SoftmaxOptions) -> Loss:
    """Replaced token detection: binary cross entropy of "replaced" at every non-padding slot (equation 6).

    A sample that equals the original unit counts as original.
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
    """Return the terms with a positive weight. The first is the one that evaluation reports."""
    if not config.is_explicit:
        tokens = fields.TOKEN_LABELS
        return [Term("token", (tokens,), config.fine_weight, contiguous_mlm_loss, _length_of(tokens))]
    query_fields = (fields.QUERY_SLOTS, fields.QUERY_RANKS, fields.FINE_ROWS, fields.FINE_LABELS)
    coarse, masked_units = (fields.COARSE_LABELS,), _length_of(fields.COARSE_LABELS)
    terms = [
        Term("coarse", coarse, config.coarse_weight, explicit_ngram_loss, masked_units),
        Term("fine", query_fields, config.fine_weight, comprehensive_loss, _length_of(fields.FINE_LABELS)),
        Term("generator", coarse, config.generator_weight, generator_loss, masked_units),
        Term("rtd", coarse, config.rtd_weight, rtd_loss, _real_slots),
    ]
    return [term for term in terms if term.weight]


def fields_of(terms: list[Term]) -> tuple[Field, ...]:
    """Return the batch fields that the encoders and some terms read."""
    encoded = (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS)
    return tuple(dict.fromkeys([*encoded, *(field for term in terms for field in term.fields)]))


def softmax_options(config: PretrainConfig, train: bool, world_size: int) -> SoftmaxOptions:
    """Return the options for batches of this config that are divided among `world_size` processes.

    The number of rows is that of full sequences without n-grams.
    """
    rows = config.held_sequences(world_size) * config.data.max_seq_len * config.objective.mask_fraction
    return SoftmaxOptions(train, int(rows) + 1, config.optimizer.precision)


def encode(model: PretrainModel, feeds: Feeds, softmax: SoftmaxOptions) -> Encoded:
    """Run the generator, if there is one, put its samples into the masked slots, and run the encoder.

    This gives the context of the second term of equation 5. Without labels among the feeds, the generator's loss is
    meaningless.
    """
    input_ids, lengths, slots = (feeds[field.name] for field in (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS))
    generated = replacement = queries = None
    if model.generator is not None:
        labels = feeds.get(fields.COARSE_LABELS.name)
        labels = paddle.zeros_like(slots) if labels is None else labels
        generated = softmax.cross_entropy(model.generator(input_ids, lengths, slots), labels, sample=True)
        replacement = model.replacement(slots, generated.sampled)
    if fields.QUERY_SLOTS.name in feeds:
        queries = QueryRows(feeds[fields.QUERY_RANKS.name], feeds[fields.QUERY_SLOTS.name])
    context_NH, queries_RH = model.encoder(input_ids, lengths, replacement=replacement, queries=queries)
    return Encoded(context_NH, queries_RH, generated)
