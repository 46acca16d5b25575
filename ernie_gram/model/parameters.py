"""The parameters of the models, each declared once: name, shape, and start value.

This is plain data without Paddle. The layers create what is declared here (layers.py), formats check files against it,
and resources count it. Records of parameters are nested as the layers are; `flat` lists them.

Names are upstream ERNIE's. Weights have shape [in, out]. Weights and embeddings start from a normal distribution
truncated at two standard deviations, biases from 0, scales from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.model.exact_relative_position import DISTANCE_BOUNDS, KEY_BEFORE_QUERY, KEY_IS_CLS

Shapes = dict[str, tuple[int, ...]]

SELF = 0  # the bucket of distance 0
# The distance start: slopes of the heads, repeated over all heads, and the distance beyond which the bias is constant.
START_SLOPES = (1.0, 1.0, 0.5, 0.5, 0.0, 0.0)
START_MAX_DISTANCE = 8


@dataclass(frozen=True)
class Normal:
    """A normal distribution around 0 with the standard deviation `std`, truncated at two of them if `truncated`."""

    std: float
    truncated: bool = True


Start = Normal | float | Callable[[], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Parameter:
    """A parameter, float32.

    Attributes:
        start: its first values: a distribution, one number for all, or a function that returns an array, float32 of its
            shape. Only a model that is created calls it: the shape may come from a downloaded file.
    """

    name: str
    shape: tuple[int, ...]
    start: Start = field(compare=False)


@dataclass(frozen=True)
class LinearParameters:
    """The parameters of x W + b: W [in, out] and b [out]."""

    weight: Parameter
    bias: Parameter


@dataclass(frozen=True)
class NormParameters:
    """The parameters of a LayerNorm: scale and bias, [size] each."""

    scale: Parameter
    bias: Parameter


@dataclass(frozen=True)
class LayerParameters:
    """The parameters of an encoder layer."""

    query: LinearParameters
    key: LinearParameters
    value: LinearParameters
    output: LinearParameters
    attention_norm: NormParameters
    ffn_in: LinearParameters
    ffn_out: LinearParameters
    ffn_norm: NormParameters


@dataclass(frozen=True)
class EncoderParameters:
    """The parameters of an encoder with its input embeddings.

    Attributes:
        word: None if it reads the word embedding of another encoder.
        projection: from the width of that embedding to its own.
        position, sentence, query: embeddings of slots, segments and query rows; None for what the encoder lacks.
        norm: of the embeddings.
        mapping: from the width of the embeddings to the hidden size, where they differ.
        relative: the relative position bias, a number per bucket and head.
        layers: from the first to the last.
    """

    word: Parameter | None
    projection: LinearParameters | None
    position: Parameter
    sentence: Parameter | None
    query: Parameter | None
    norm: NormParameters
    mapping: LinearParameters | None
    relative: Parameter | None
    layers: tuple[LayerParameters, ...]


@dataclass(frozen=True)
class HeadParameters:
    """The parameters of a prediction head over classes.

    Attributes:
        transform, norm: before the output table; only tied heads have a LayerNorm.
        table: None if the head reads a table of another part.
    """

    transform: LinearParameters
    norm: NormParameters | None
    table: Parameter | None
    bias: Parameter


def flat(*declared: Any) -> Iterator[Parameter]:
    """Yield the parameters in records, tuples of records and Nones."""
    for each in declared:
        if isinstance(each, Parameter):
            yield each
        elif isinstance(each, tuple):
            yield from flat(*each)
        elif is_dataclass(each):
            yield from flat(*(getattr(each, part.name) for part in fields(each)))


def shapes_of(*declared: Any) -> Shapes:
    """Return name -> shape of the parameters in records, tuples of records and Nones."""
    return {parameter.name: parameter.shape for parameter in flat(*declared)}


def count(shapes: Shapes) -> int:
    """Return the number of numbers in parameters of these shapes."""
    return sum(prod(shape) for shape in shapes.values())


def table(name: str, rows: int, size: int, std: float) -> Parameter:
    """Declare an embedding or an output table, [rows, size]."""
    return Parameter(name, (rows, size), Normal(std))


def linear(
    name: str, size_in: int, size_out: int, start: Normal, endings: tuple[str, str] = (".w_0", ".b_0")
) -> LinearParameters:
    """Declare a linear layer; `endings` are those of the names of W and b, where upstream's are irregular."""
    weight, bias = (name + ending for ending in endings)
    return LinearParameters(Parameter(weight, (size_in, size_out), start), Parameter(bias, (size_out,), 0.0))


def norm(name: str, size: int) -> NormParameters:
    """Declare a LayerNorm."""
    return NormParameters(Parameter(f"{name}_scale", (size,), 1.0), Parameter(f"{name}_bias", (size,), 0.0))


def encoder(
    config: ModelConfig, vocab_size: int, prefix: str = "", shared: int | None = None, with_queries: bool = False
) -> EncoderParameters:
    """Declare an encoder.

    Args:
        prefix: of every parameter's name; the generator is an encoder too.
        shared: width of another encoder's word embedding, which this one reads through a projection; None if it has its
            own.
        with_queries: whether there are query rows, which need an embedding of their own.
    """
    size, hidden, start = config.embedding_size, config.hidden_size, Normal(config.initializer_range)

    def embedding(name: str, rows: int) -> Parameter:
        return table(f"{prefix}{name}_embedding", rows, size, config.initializer_range)

    return EncoderParameters(
        word=embedding("word", vocab_size) if shared is None else None,
        projection=None if shared is None else linear(f"{prefix}word_projection", shared, size, start),
        position=embedding("pos", config.max_position_embeddings),
        sentence=embedding("sent", config.sent_type_vocab_size) if config.use_sentence_embedding else None,
        query=embedding("query", config.max_ngram_tokens) if with_queries else None,
        norm=norm(f"{prefix}pre_encoder_layer_norm", size),
        mapping=None if size == hidden else linear(f"{prefix}emb_hidden_mapping", size, hidden, start, ("", "_bias")),
        relative=_relative(f"{prefix}rel_pos_embedding", config) if config.use_relative_position else None,
        layers=tuple(_layer(f"{prefix}encoder_layer_{i}", config) for i in range(config.num_hidden_layers)),
    )


def _relative(name: str, config: ModelConfig) -> Parameter:
    heads = config.num_attention_heads
    starts: dict[str, Start] = {
        "normal": Normal(config.initializer_range),
        "distance": partial(distance_start, heads),
        "zero": 0.0,
    }
    return Parameter(name, (NUM_BUCKETS, heads), starts[config.relative_position_start])


def distance_start(heads: int) -> npt.NDArray[np.float32]:
    """Return start values of the relative bias, float32 [33, A], with which each head prefers near slots.

    The bias of a key at distance d is -slope * min(d, 8): to the right of the query in even heads, to its left in odd
    heads, and on both sides in a single head. All other keys, the query itself and [CLS] among them, have the bias
    -slope * 8. This start is not from the paper. Small models learn faster with it: from normal start values, their
    predictions stay at the level of unit frequencies for thousands of steps.
    """
    slopes_A = np.resize(np.array(START_SLOPES, np.float32), heads)
    distances_RA = np.full((NUM_BUCKETS, heads), START_MAX_DISTANCE, np.float32)
    # Bucket b > 0 begins at distance DISTANCE_BOUNDS[b - 1]. All buckets that contain several distances begin at 8 or
    # later, so each bucket has one value of min(d, 8).
    near_B1 = np.minimum(DISTANCE_BOUNDS, START_MAX_DISTANCE)[:, np.newaxis]
    distances_RA[1:KEY_BEFORE_QUERY, 0::2] = near_B1
    distances_RA[KEY_BEFORE_QUERY + 1 : KEY_IS_CLS, 1 if heads > 1 else 0 :: 2] = near_B1
    return -slopes_A * distances_RA


def _layer(name: str, config: ModelConfig) -> LayerParameters:
    hidden, inner, start = config.hidden_size, config.feed_forward_size, Normal(config.initializer_range)
    query, key, value, output = (
        linear(f"{name}_multi_head_att_{part}_fc", hidden, hidden, start)
        for part in ("query", "key", "value", "output")
    )
    return LayerParameters(
        *(query, key, value, output),
        norm(f"{name}_post_att_layer_norm", hidden),
        linear(f"{name}_ffn_fc_0", hidden, inner, start),
        linear(f"{name}_ffn_fc_1", inner, hidden, start),
        norm(f"{name}_post_ffn_layer_norm", hidden),
    )


def pooler(config: ModelConfig) -> LinearParameters:
    """Declare the pooler."""
    return linear("pooled_fc", config.hidden_size, config.hidden_size, Normal(config.initializer_range))


def transform(
    prefix: str, config: ModelConfig, tied: int | None = None
) -> tuple[LinearParameters, NormParameters | None]:
    """Declare the transform of a prediction head; see `head`."""
    size = config.out_emb_size or tied or config.embedding_size
    layer = linear(f"{prefix}_trans_fc", config.hidden_size, size, Normal(config.initializer_range))
    return layer, None if config.out_emb_size else norm(f"{prefix}_trans_layer_norm", size)


def head(
    prefix: str, config: ModelConfig, classes: int, tied: int | None = None, shared: bool = False
) -> HeadParameters:
    """Declare a prediction head over classes: tied to embeddings if out_emb_size is 0, or else low-rank.

    Args:
        tied: width of the embeddings that a tied head reads; None means that of the encoder of `config`.
        shared: whether a low-rank head reads the table of another head.
    """
    size, own = config.out_emb_size, None
    if size and not shared:
        own = table(f"{prefix}_out_embedding", classes, size, config.initializer_range)
    return HeadParameters(*transform(prefix, config, tied), own, Parameter(f"{prefix}_out_fc.b_0", (classes,), 0.0))
