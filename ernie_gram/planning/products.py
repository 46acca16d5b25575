"""The floating-point operations of a training step: those of its matrix products, which dominate.

A product [n, k] x [k, m] takes 2 n k m operations, and its backward pass twice as many. Products with a dimension of 1
are additions and inner products in another form (see layers.add_bias), and are not counted, nor is the look-up of the
relative position bias, which is below a hundredth of the attention.
"""

from __future__ import annotations

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes

# Forward pass, and backward pass with respect to both factors.
FORWARD, TRAINING = 1, 3
# Blocks of classes from which samples are drawn, see chunked_softmax.BLOCKS.
SAMPLING_BLOCKS = 32


def step_flops(
    config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, factor: int = TRAINING
) -> dict[str, float]:
    """Return the operations of a step of one process, by part of the network.

    `factor` is TRAINING, or FORWARD for the forward pass alone.
    """
    model, objective = config.model, config.objective
    parts = {
        "projections": _projections(model, shape.rows),
        "feed-forward": _feed_forward(model, shape.rows),
        "attention": _attention(model, shape.rows, shape.slots),
        "head": _head(config, model, shape.predicted_rows, sizes.classes(config)),
    }
    if objective.has_queries:
        rows = shape.query_rows
        parts["query rows"] = (
            _projections(model, rows) + _feed_forward(model, rows) + _attention(model, rows, shape.slots)
        )
        parts["fine head"] = _head(config, model, shape.fine_rows, sizes.tokens)
    if objective.has_generator:
        small = config.generator.model(model)
        encoder = _projections(small, shape.rows) + _feed_forward(small, shape.rows)
        encoder += _attention(small, shape.rows, shape.slots)
        if config.generator.share_embeddings:
            encoder += 2 * shape.rows * model.embedding_size * small.embedding_size
        parts["generator"] = encoder
        parts["generator head"] = _head(config, small, shape.predicted_rows, sizes.classes(config))
    if objective.rtd_weight:
        parts["detection"] = 2 * shape.rows * model.hidden_size**2
    flops = {name: float(factor * value) for name, value in parts.items()}
    if objective.has_generator:
        # Samples are drawn without a gradient.
        flops["sampling"] = 2.0 * shape.predicted_rows * sizes.classes(config) * SAMPLING_BLOCKS
    return flops


def recomputed_flops(config: PretrainConfig, shape: BatchShape) -> float:
    """Return the operations of a step of one process that trainer.recompute adds: a forward pass of all layers."""
    if not config.trainer.recompute:
        return 0.0
    main, objective = config.model, config.objective
    encoders = [(main, shape.rows + (shape.query_rows if objective.has_queries else 0))]
    if objective.has_generator:
        encoders.append((config.generator.model(main), shape.rows))
    return float(
        sum(
            _layer_projections(model, rows) + _feed_forward(model, rows) + _attention(model, rows, shape.slots)
            for model, rows in encoders
        )
    )


def _projections(model: ModelConfig, rows: int) -> int:
    """Query, key, value and output of all layers, and the mapping of the embeddings if there is one."""
    hidden, size = model.hidden_size, model.embedding_size
    mapping = 2 * rows * size * hidden if size != hidden else 0
    return _layer_projections(model, rows) + mapping


def _layer_projections(model: ModelConfig, rows: int) -> int:
    return model.num_hidden_layers * 8 * rows * model.hidden_size**2


def _feed_forward(model: ModelConfig, rows: int) -> int:
    return model.num_hidden_layers * 4 * rows * model.hidden_size * model.feed_forward_size


def _attention(model: ModelConfig, rows: int, keys: int) -> int:
    """Scores, and the sum of the values, of `rows` queries over `keys` keys each."""
    return model.num_hidden_layers * 4 * rows * keys * model.hidden_size


def _head(config: PretrainConfig, model: ModelConfig, rows: int, classes: int) -> int:
    shared = config.generator.share_embeddings or model is config.model
    size = model.out_emb_size or (config.model if shared else model).embedding_size
    return 2 * rows * model.hidden_size * size + 2 * rows * size * classes
