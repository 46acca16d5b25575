"""The floating-point operations of a training step: those of its matrix products, which dominate.

A product's backward pass takes twice as many as the product itself (see terms/products.py).
"""

from __future__ import annotations

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import terms_of
from ernie_gram.pretraining.terms.products import attention, feed_forward, layer_products, projections

# Forward pass, and backward pass with respect to both factors.
FORWARD, TRAINING = 1, 3


def step_flops(
    config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, factor: int = TRAINING
) -> dict[str, float]:
    """Return the operations of a step of one process, by part of the network.

    `factor` is TRAINING, or FORWARD for the forward pass alone.
    """
    model, terms = config.model, terms_of(config.objective)
    parts = {
        "projections": projections(model, shape.rows),
        "feed-forward": feed_forward(model, shape.rows),
        "attention": attention(model, shape.rows, shape.slots),
    }
    for term in terms:
        parts |= term.products(config, sizes, shape)
    flops = {name: float(factor * value) for name, value in parts.items()}
    for term in terms:
        flops |= term.products_without_gradient(config, sizes, shape)
    return flops


def recomputed_flops(config: PretrainConfig, shape: BatchShape) -> float:
    """Return the operations of a step of one process that trainer.recompute adds: a forward pass of all layers."""
    if not config.trainer.recompute:
        return 0.0
    queries = shape.query_rows if config.objective.has_queries else 0
    beside = (term.encoder(config) for term in terms_of(config.objective))
    encoders = [(config.model, shape.rows + queries), *((model, shape.rows) for model in beside if model)]
    return float(sum(layer_products(model, rows, shape.slots) for model, rows in encoders))
