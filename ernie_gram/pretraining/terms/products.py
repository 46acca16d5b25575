"""The floating-point operations of the matrix products of encoders and heads, in a forward pass.

A product [n, k] x [k, m] takes 2 n k m operations. Products with a dimension of 1 are additions and inner products in
another form (see layers.for_each_sequence), and are not counted, nor is the look-up of the relative position bias,
which is below a hundredth of the attention.
"""

from __future__ import annotations

from math import prod

from ernie_gram.model.config import ModelConfig
from ernie_gram.model.parameters import HeadParameters


def encoder_products(model: ModelConfig, rows: int, keys: int, wanted: int) -> int:
    """Return the operations of an encoder for `rows` rows that attend to `keys` keys each; `wanted` are returned."""
    return projections(model, rows, wanted) + feed_forward(model, rows, wanted) + attention(model, rows, keys)


def layer_products(model: ModelConfig, rows: int, keys: int, wanted: int) -> int:
    """Return the operations of all layers of an encoder, without its embeddings."""
    return _layer_projections(model, rows, wanted) + feed_forward(model, rows, wanted) + attention(model, rows, keys)


def projections(model: ModelConfig, rows: int, wanted: int) -> int:
    """Return the operations of query, key, value and output in all layers, and of the mapping of the embeddings."""
    hidden, size = model.hidden_size, model.embedding_size
    mapping = 2 * rows * size * hidden if size != hidden else 0
    return _layer_projections(model, rows, wanted) + mapping


def _layer_projections(model: ModelConfig, rows: int, wanted: int) -> int:
    return (6 * model.num_hidden_layers * rows + 2 * _passes(model, rows, wanted)) * model.hidden_size**2


def feed_forward(model: ModelConfig, rows: int, wanted: int) -> int:
    """Return the operations of the feed-forward networks of all layers."""
    return 4 * _passes(model, rows, wanted) * model.hidden_size * model.feed_forward_size


def _passes(model: ModelConfig, rows: int, wanted: int) -> int:
    """Return the rows of all layers after the attention, of which the last layer has only those that are wanted."""
    return (model.num_hidden_layers - 1) * rows + wanted


def attention(model: ModelConfig, rows: int, keys: int) -> int:
    """Return the operations of the scores and the weighted sums of values of `rows` queries over `keys` keys each."""
    return model.num_hidden_layers * 4 * rows * keys * model.hidden_size


def head_products(head: HeadParameters, rows: int) -> int:
    """Return the operations of the transform and the logits of a prediction head for `rows` rows."""
    return 2 * rows * (prod(head.transform.linear.weight.shape) + head.transform.size * head.bias.shape[0])
