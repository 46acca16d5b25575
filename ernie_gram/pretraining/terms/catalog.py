"""The list of all terms of the objective. A new term is a module, an entry here, and a weight in ObjectiveConfig."""

from __future__ import annotations

from collections.abc import Iterable

from ernie_gram.pretraining.config import ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.comprehensive import Comprehensive
from ernie_gram.pretraining.terms.generator import Generator
from ernie_gram.pretraining.terms.masked_units import Contiguous, Explicit
from ernie_gram.pretraining.terms.products import attention, feed_forward, layer_products, projections
from ernie_gram.pretraining.terms.replaced_tokens import ReplacedTokens
from ernie_gram.pretraining.terms.term import Term
from reader.batches import fields
from reader.batches.fields import Field

# In the order in which their parameters are made and their losses are logged.
TERMS: list[Term] = [Contiguous(), Explicit(), Comprehensive(), Generator(), ReplacedTokens()]

# Operations of a product with its backward pass with respect to both factors, in products.
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
    """Return the names of parameters of which a step uses few rows (see training.job.Job)."""
    return frozenset().union(*(term.sparse_parameters(config) for term in terms_of(config.objective)))


def wanted_rows(objective: ObjectiveConfig, shape: BatchShape) -> int:
    """Return the rows of the context that the encoder returns: those of the masked slots, unless a term reads all."""
    return shape.rows if reads_context(terms_of(objective)) else shape.predicted_rows


def step_flops(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> dict[str, float]:
    """Return the floating-point operations of a step of one process, by part of the network.

    Only matrix products are counted, which dominate (see products.py), without the one by which a GPU draws samples.
    """
    model, wanted = config.model, wanted_rows(config.objective, shape)
    parts = {
        "projections": projections(model, shape.rows, wanted),
        "feed-forward": feed_forward(model, shape.rows, wanted),
        "attention": attention(model, shape.rows, shape.slots),
    }
    for term in terms_of(config.objective):
        parts |= term.products(config, sizes, shape)
    return {name: float(TRAINING * value) for name, value in parts.items()}


def recomputed_flops(config: PretrainConfig, shape: BatchShape) -> float:
    """Return the operations of a step of one process that trainer.recompute adds: a forward pass of all layers."""
    if not config.trainer.recompute:
        return 0.0
    queries = shape.query_rows if config.objective.has_queries else 0
    wanted = wanted_rows(config.objective, shape)
    main = layer_products(config.model, shape.rows + queries, shape.slots, wanted + queries)
    beside = [model for term in terms_of(config.objective) if (model := term.encoder(config))]
    return float(main + sum(layer_products(model, shape.rows, shape.slots, shape.predicted_rows) for model in beside))
