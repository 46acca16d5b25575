"""The Transformer encoder: BERT's post-norm layers under upstream's parameter names (paper, section 4.2).

Shape letters: B sequences, L slots, N = B * L, K query rows per sequence, R = B * K, E embedding size, H hidden,
A heads, M slots, T slots that are not padding.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.distributed.device import on_cpu
from ernie_gram.graph import MarkedLayer, float32, fuses, network
from ernie_gram.kernels.encoder_layers import Given, Settings
from ernie_gram.kernels.layer_operations import encoder_layers
from ernie_gram.kernels.operations import dropout_keys
from ernie_gram.kernels.products import SMALL
from ernie_gram.model.attention import Attention, Shared, bias_rows, padding_bias, relative_bias, split
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.layers import (
    Embedding,
    LayerNorm,
    Linear,
    dropout,
    embedding,
    optional,
)
from ernie_gram.model.parameters import SELF, EncoderParameters, LayerParameters, pooler


def activation(name: str, x: paddle.Tensor) -> paddle.Tensor:
    """Return gelu(x), the exact form with erf, or relu(x)."""
    return F.gelu(x) if name == "gelu" else F.relu(x)


@dataclass(frozen=True)
class Queries:
    """Query rows [Mi]: int64 [B, K] ranks i - 1, and int64 [B, K] slots whose tokens they predict."""

    ranks: paddle.Tensor
    slots: paddle.Tensor


@dataclass(frozen=True)
class Replacement:
    """Embeddings, [M, E], that replace those of the tokens in some slots, int64 [M] as b * L + l."""

    slots: paddle.Tensor
    embeddings: paddle.Tensor


class InputEmbeddings(nn.Layer):
    """word + position (+ sentence) -> LayerNorm -> dropout (-> mapping to the hidden size).

    With `shared`, the word embeddings are those of another model, mapped to this model's width by a projection.
    """

    def __init__(self, declared: EncoderParameters, config: ModelConfig, shared: Embedding | None) -> None:
        super().__init__()
        self.word = embedding(declared.word, shared)
        self.projection = optional(Linear, declared.projection)
        self.position = Embedding(declared.position)
        self.sentence = optional(Embedding, declared.sentence)
        self.query = optional(Embedding, declared.query)
        self.norm = LayerNorm(declared.norm, config.layer_norm_eps)
        self.dropout, self.size = config.hidden_dropout_prob, config.embedding_size
        self.mapping = optional(Linear, declared.mapping)

    def forward(
        self,
        input_ids_BL: paddle.Tensor,
        sentence_ids_BL: paddle.Tensor | None,
        replacement: Replacement | None,
        queries: Queries | None,
    ) -> tuple[paddle.Tensor, paddle.Tensor | None]:
        """Return the sums of embeddings of the context, float32 [B, L, E], and of query rows, [B, K, E], or None."""
        if self.sentence is not None and sentence_ids_BL is None:
            sentence_ids_BL = paddle.zeros_like(input_ids_BL)
        context_BLE = self._context(input_ids_BL, sentence_ids_BL, replacement)
        return context_BLE, None if queries is None else self._queries(queries, sentence_ids_BL)

    def rows(self, sums: paddle.Tensor) -> paddle.Tensor:
        """Return rows of the width of the layers, float32 [..., H], for sums of embeddings, [..., E]."""
        rows = dropout(self.norm(sums), self.dropout, self.training)
        return rows if self.mapping is None else float32(self.mapping(rows))

    def _context(
        self, input_ids_BL: paddle.Tensor, sentence_ids_BL: paddle.Tensor | None, replacement: Replacement | None
    ) -> paddle.Tensor:
        """Return the sums of the context's embeddings, float32 [B, L, E]."""
        embedded_BLE = self.word(input_ids_BL)
        if self.projection is not None:
            embedded_BLE = float32(self.projection(embedded_BLE))
        length = paddle.shape(input_ids_BL)[1]
        if replacement is not None:
            rows_NE = paddle.scatter(embedded_BLE.flatten(0, 1), replacement.slots, replacement.embeddings)
            embedded_BLE = rows_NE.reshape([-1, length, self.size])
        position_LE = self.position(paddle.arange(length))
        embedded_BLE = embedded_BLE + position_LE
        return embedded_BLE if self.sentence is None else embedded_BLE + self.sentence(sentence_ids_BL)

    def _queries(self, queries: Queries, sentence_ids_BL: paddle.Tensor | None) -> paddle.Tensor:
        """Return those of query rows, [B, K, E]: [Mi], and position and sentence of the slot (section 3.3)."""
        assert self.query is not None
        embedded_BKE = self.query(queries.ranks) + self.position(queries.slots)
        if self.sentence is None:
            return embedded_BKE
        sentence_ids_BK = paddle.take_along_axis(sentence_ids_BL, queries.slots, 1, broadcast=False)
        return embedded_BKE + self.sentence(sentence_ids_BK)


class EncoderLayer(nn.Layer):
    """Attention and feed-forward network, each followed by dropout -> residual -> LayerNorm.

    Its parts are made in the order of Parameters in kernels/encoder_layers.py: there, programs for a CPU compute the
    same in one operation.
    """

    def __init__(self, declared: LayerParameters, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(declared, config)
        self.attention_norm = LayerNorm(declared.attention_norm, config.layer_norm_eps)
        self.ffn_in, self.ffn_out = Linear(declared.ffn_in), Linear(declared.ffn_out)
        self.ffn_norm = LayerNorm(declared.ffn_norm, config.layer_norm_eps)
        self.act = config.hidden_act
        self.dropout = config.hidden_dropout_prob

    def forward(self, rows: paddle.Tensor, shared: Shared, wanted_M: paddle.Tensor | None = None) -> paddle.Tensor:
        """Return new rows, float32 [B, length, H].

        Args:
            wanted_M: numbers of the only rows of the context that are returned, int64; then [1, M + R, H].
        """
        attended = self.attention(rows, shared)
        if wanted_M is not None:
            rows, attended = (_selected(x, shared.sizes, wanted_M) for x in (rows, attended))
        attended = self.attention.output(attended)
        rows = self.attention_norm(rows + float32(dropout(attended, self.dropout, self.training)))
        fed = self.ffn_out(activation(self.act, self.ffn_in(rows)))
        return self.ffn_norm(rows + float32(dropout(fed, self.dropout, self.training)))


def _selected(rows: paddle.Tensor, sizes: tuple[paddle.Tensor, ...], wanted_M: paddle.Tensor) -> paddle.Tensor:
    """Return some rows of the context, and all query rows, [1, M + R, H]."""
    context, queries = split(rows, sizes)
    selected = paddle.gather(context.flatten(0, 1), wanted_M)
    return (selected if queries is None else paddle.concat([selected, queries.flatten(0, 1)])).unsqueeze(0)


class Encoder(nn.Layer):
    """Input embeddings and encoder layers; `train()` and `eval()` switch dropout.

    Args:
        declared: its parameters, see parameters.encoder.
        shared: the word embedding of another encoder, if it has none of its own.
    """

    def __init__(self, declared: EncoderParameters, config: ModelConfig, shared: Embedding | None = None) -> None:
        super().__init__()
        self.embeddings = InputEmbeddings(declared, config, shared)
        self.config, self.heads = config, config.num_attention_heads
        self.relative = optional(Embedding, declared.relative)
        self.layers = nn.LayerList([EncoderLayer(layer, config) for layer in declared.layers])

    def forward(
        self,
        input_ids_BL: paddle.Tensor,
        lengths_B: paddle.Tensor,
        sentence_ids_BL: paddle.Tensor | None = None,
        replacement: Replacement | None = None,
        queries: Queries | None = None,
        wanted_M: paddle.Tensor | None = None,
    ) -> tuple[paddle.Tensor, paddle.Tensor | None]:
        """Encode token slots, int64 [B, L], of which the first lengths[b] are not padding, and query rows if given.

        Returns the context's rows, [N, H], and the query rows, [R, H] or None. If layers are one operation, padding is
        left out, and its rows are 0.

        Args:
            wanted_M: the only slots whose rows are returned, [M, H]; int64 as b * L + l, none of them padding. The last
                layer computes nothing else after its attention.
        """
        context_BLE, queries_BKE = self.embeddings(input_ids_BL, sentence_ids_BL, replacement, queries)
        slots_BK = None if queries is None else queries.slots
        compute = self._fused if fuses() else self._composed
        return compute(context_BLE, queries_BKE, lengths_B, slots_BK, wanted_M)

    def _fused(
        self,
        context_BLE: paddle.Tensor,
        queries_BKE: paddle.Tensor | None,
        lengths_B: paddle.Tensor,
        slots_BK: paddle.Tensor | None,
        wanted_M: paddle.Tensor | None,
    ) -> tuple[paddle.Tensor, paddle.Tensor | None]:
        """Compute with the rows that are not padding, of all sequences together, and layers as operations."""
        table, length = self.relative, paddle.shape(context_BLE)[1]
        starts = paddle.concat([paddle.zeros([1], "int64"), paddle.cumsum(lengths_B)])
        is_real_N = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).flatten()
        real_T, numbers_M = paddle.nonzero(is_real_N).flatten(), None
        rows = paddle.gather(context_BLE.flatten(0, 1), real_T)
        if queries_BKE is not None:
            rows = paddle.concat([rows, queries_BKE.flatten(0, 1)])
        rows = self.embeddings.rows(rows)
        if wanted_M is not None:
            numbers_M = paddle.gather(paddle.cumsum(is_real_N.astype("int64")) - 1, wanted_M)
        bias = None if table is None else relative_bias(table, length).unsqueeze(0)
        self_bias = None if table is None or slots_BK is None else table.weight[SELF]
        rows = self._after_layers(rows, Given(starts, bias, self_bias, slots_BK, numbers_M))
        context, query_rows = split(rows.unsqueeze(0), _sizes(real_T if wanted_M is None else wanted_M, slots_BK))
        context = context.flatten(0, 1)
        if wanted_M is None:
            every = paddle.zeros([paddle.shape(is_real_N)[0], context.shape[-1]])
            context = paddle.scatter(every, real_T, context)
        return context, None if query_rows is None else query_rows.flatten(0, 1)

    def _after_layers(self, rows: paddle.Tensor, given: Given) -> paddle.Tensor:
        config, is_rounded = self.config, network().precision == "bfloat16" and self.config.hidden_size > SMALL
        rates = (config.hidden_dropout_prob, config.attention_probs_dropout_prob) if self.training else (0.0, 0.0)
        settings = Settings(self.heads, config.hidden_act, config.layer_norm_eps, *rates, is_rounded)
        if not self.training:
            return encoder_layers(rows, [layer.parameters() for layer in self.layers], given, settings)
        for layer, key in zip(self.layers, dropout_keys(len(self.layers)), strict=True):
            read = given if layer is self.layers[-1] else given._replace(wanted=None)
            rows = encoder_layers(rows, [layer.parameters()], read, settings, key, network().recomputes)
        return rows

    def _composed(
        self,
        context_BLE: paddle.Tensor,
        queries_BKE: paddle.Tensor | None,
        lengths_B: paddle.Tensor,
        slots_BK: paddle.Tensor | None,
        wanted_M: paddle.Tensor | None,
    ) -> tuple[paddle.Tensor, paddle.Tensor | None]:
        """Compute with a row for each slot, and single operations."""
        rows, length = context_BLE, paddle.shape(context_BLE)[1]
        sizes: tuple[paddle.Tensor, ...] = ()
        if queries_BKE is not None:
            rows = paddle.concat([context_BLE, queries_BKE], 1)
            sizes = length, paddle.shape(queries_BKE)[1]
        rows, shared = self.embeddings.rows(rows), self._shared(lengths_B, length, slots_BK, sizes)
        for layer in self.layers:
            with MarkedLayer() if self.training else nullcontext():
                rows = layer(rows, shared, wanted_M if layer is self.layers[-1] else None)
        context, query_rows = split(rows, sizes if wanted_M is None else _sizes(wanted_M, slots_BK))
        return context.flatten(0, 1), None if query_rows is None else query_rows.flatten(0, 1)

    def _shared(
        self,
        lengths_B: paddle.Tensor,
        length: paddle.Tensor,
        slots_BK: paddle.Tensor | None,
        sizes: tuple[paddle.Tensor, ...],
    ) -> Shared:
        """Return what all layers read besides the rows.

        The scores are by far the largest tensors of a step: with one bias, including the padding mask, each layer makes
        one addition to them, and the gradient of the bias is summed over the batch once.
        """
        padding_B11L = padding_bias(lengths_B, length)
        if self.relative is None:
            bias = padding_B11L
            if on_cpu():
                # There an addition that broadcasts takes four times as long.
                bias = paddle.expand(padding_B11L, [paddle.shape(lengths_B)[0], self.heads, length, length])
            return Shared(bias, padding_B11L, paddle.zeros([1], "float32"), sizes)
        relative_ALL = relative_bias(self.relative, length)
        bias = relative_ALL + padding_B11L
        if slots_BK is None:
            return Shared(bias)
        query_bias = padding_B11L + bias_rows(relative_ALL, slots_BK)
        return Shared(bias, query_bias, self.relative.weight[SELF].reshape([1, -1, 1, 1]), sizes)


def _sizes(rows: paddle.Tensor, slots_BK: paddle.Tensor | None) -> tuple[paddle.Tensor, ...]:
    """Return the numbers of the context's rows and of query rows, for `split`, if there are query rows."""
    return () if slots_BK is None else tuple(paddle.shape(x.flatten())[0] for x in (rows, slots_BK))


class Pooler(nn.Layer):
    """tanh(h W + b) of the encoder's output h for [CLS], as in BERT: one vector for a whole sequence.

    It is for fine-tuning and inference; pre-training does not train it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.transform = Linear(pooler(config))

    def forward(self, first_BH: paddle.Tensor) -> paddle.Tensor:
        """Return [B, H] for the encoder's output in the first slot of each sequence, [B, H]."""
        return F.tanh(self.transform(first_BH))
