"""The list of all terms of the objective. A new term is a module, an entry here, and a weight in ObjectiveConfig."""

from __future__ import annotations

from collections.abc import Iterable

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.generator import Generator, ReplacedTokens
from ernie_gram.pretraining.terms.masked_units import Comprehensive, Contiguous, Explicit
from ernie_gram.pretraining.terms.term import Term
from reader.batches import fields
from reader.batches.fields import Field

# In the order in which their parameters are made and their losses are logged.
TERMS: list[Term] = [Contiguous(), Explicit(), Comprehensive(), Generator(), ReplacedTokens()]

# Operations of a product with its backward pass with respect to both factors, relative to the forward pass.
TRAINING = 3


def terms_of(objective: ObjectiveConfig) -> list[Term]:
    """Return the terms with a positive weight."""
    return [term for term in TERMS if term.weight(objective)]


def reads_context(terms: Iterable[Term]) -> bool:
    """Return whether any of the terms reads other slots than the masked ones."""
    return any(term.reads_context for term in terms)


def evaluated(objective: ObjectiveConfig) -> list[Term]:
    """Return the terms that have metrics in evaluation."""
    return [term for term in terms_of(objective) if term.num_sums]


def fields_of(terms: Iterable[Term]) -> tuple[Field, ...]:
    """Return the batch fields that the encoders and the given terms read."""
    encoded = (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS)
    return tuple(dict.fromkeys([*encoded, *(field for term in terms for field in term.fields)]))


def sparse_parameters(config: PretrainConfig) -> frozenset[str]:
    """Return the names of parameters of which a step uses few rows (see training.job.Job).

    It is the n-gram embedding if no output is tied to it: then only samples are looked up in it. The token embedding is
    not among them, because a large batch contains most tokens.
    """
    return frozenset({"ngram_embedding"} if config.objective.has_generator and config.model.out_emb_size else ())


def wanted_rows(objective: ObjectiveConfig, shape: BatchShape) -> int:
    """Return the rows of the context that the encoder returns: those of the masked slots, unless a term reads all."""
    return shape.rows if reads_context(terms_of(objective)) else shape.predicted_rows


def step_flops(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> float:
    """Return the floating-point operations of a step of one process, without those of recomputing layers.

    Only those of matrix products are counted, which dominate, without the one by which a GPU draws samples. A product
    [n, k] x [k, m] takes 2 n k m of them. Products with a dimension of 1 are inner products in another form, and are
    not counted, nor is the look-up of the relative position bias, which is below a hundredth of the attention.
    """
    heads = sum(term.products(config, sizes, shape) for term in terms_of(config.objective))
    return float(TRAINING * (_encoders(config, shape) + heads))


def recomputed_flops(config: PretrainConfig, shape: BatchShape) -> float:
    """Return the operations of a step of one process that trainer.recompute adds: a forward pass of all encoders."""
    return float(_encoders(config, shape)) if config.trainer.recompute else 0.0


def _encoders(config: PretrainConfig, shape: BatchShape) -> int:
    """Return the operations of the encoders; evaluation, too, returns the rows that training wants."""
    queries, wanted = shape.query_rows, wanted_rows(config.objective, shape)
    main = _encoder(config.model, shape, shape.rows + queries, wanted + queries)
    if not config.objective.has_generator:
        return main
    return main + _encoder(config.generator.model(config.model), shape, shape.rows, shape.predicted_rows)


def _encoder(model: ModelConfig, shape: BatchShape, rows: int, wanted: int) -> int:
    """Return the operations of an encoder for `rows` rows that each attend to a context; `wanted` are returned."""
    hidden, size, layers = model.hidden_size, model.embedding_size, model.num_hidden_layers
    mapping = 2 * rows * size * hidden if size != hidden else 0
    # Query, key and value; scores and weighted sums of values.
    attention = layers * rows * (6 * hidden**2 + 4 * shape.slots * hidden)
    # Of the rows after the attention, the last layer has only those that are wanted.
    after = ((layers - 1) * rows + wanted) * (2 * hidden**2 + 4 * hidden * model.feed_forward_size)
    return mapping + attention + after
