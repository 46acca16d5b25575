"""The Transformer encoder: BERT's post-norm layers under upstream's parameter names (paper, section 4.2).

Shape letters: B sequences, L slots, N = B * L, K query rows per sequence, R = B * K, E embedding size, H hidden,
A heads, M slots. For rows without padding (PackedRows) read B as 1, and L as the number of rows.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.distributed.device import on_cpu
from ernie_gram.graph import MarkedLayer, float32, fuses, recomputes, rounds
from ernie_gram.kernels.encoder_layers import Given, Settings
from ernie_gram.kernels.layer_operations import encoder_layer, encoder_layers
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
    for_each_sequence,
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


class SlotRows:
    """A row for each slot, [B, L, E]."""

    def of(self, slots_BLE: paddle.Tensor) -> paddle.Tensor:
        """Return the rows, float32 [B, L, E], of the slots' embeddings [B, L, E]."""
        return slots_BLE

    def queries(self, rows_BKE: paddle.Tensor) -> paddle.Tensor:
        """Return query rows, float32 [B, K, E], in the form of the others."""
        return rows_BKE

    def numbers(self, slots_M: paddle.Tensor) -> paddle.Tensor:
        """Return the numbers of the rows, int64 [M], of slots b * L + l, none of them padding."""
        return slots_M

    def slots(self, rows: paddle.Tensor) -> paddle.Tensor:
        """Return the rows [B, L, H] in the order of the slots, [B * L, H]."""
        return rows.flatten(0, 1)


class PackedRows(SlotRows):
    """The slots that are not padding, T of all sequences together: [1, T, E].

    Attributes:
        starts: the first row of each sequence, and the number of rows, int64 [B + 1].
    """

    def __init__(self, lengths_B: paddle.Tensor, length: paddle.Tensor) -> None:
        self.starts = paddle.concat([paddle.zeros([1], "int64"), paddle.cumsum(lengths_B)])
        self._is_real = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).flatten()
        self._real = paddle.nonzero(self._is_real).flatten()

    def of(self, slots_BLE: paddle.Tensor) -> paddle.Tensor:
        return paddle.gather(slots_BLE.flatten(0, 1), self._real).unsqueeze(0)

    def queries(self, rows_BKE: paddle.Tensor) -> paddle.Tensor:
        return rows_BKE.flatten(0, 1).unsqueeze(0)

    def numbers(self, slots_M: paddle.Tensor) -> paddle.Tensor:
        return paddle.gather(paddle.cumsum(self._is_real.astype("int64")) - 1, slots_M)

    def slots(self, rows: paddle.Tensor) -> paddle.Tensor:
        """Return the rows in the order of the slots, [B * L, H]; those of padding are 0."""
        every = paddle.zeros([paddle.shape(self._is_real)[0], rows.shape[-1]])
        return paddle.scatter(every, self._real, rows.flatten(0, 1))


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
        layout: SlotRows,
    ) -> tuple[paddle.Tensor, tuple[paddle.Tensor, ...]]:
        """Return the embeddings of the context and behind them those of query rows, [B, length, H], in a layout's form.

        Also returned are the sizes of both along axis 1, scalars; () without query rows.
        """
        if self.sentence is not None and sentence_ids_BL is None:
            sentence_ids_BL = paddle.zeros_like(input_ids_BL)
        rows = layout.of(self._context(input_ids_BL, sentence_ids_BL, replacement))
        sizes: tuple[paddle.Tensor, ...] = ()
        if queries is not None:
            parts = [rows, layout.queries(self._queries(queries, sentence_ids_BL))]
            rows, sizes = paddle.concat(parts, 1), tuple(paddle.shape(part)[1] for part in parts)
        rows = dropout(self.norm(rows), self.dropout, self.training)
        return rows if self.mapping is None else float32(self.mapping(rows)), sizes

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
        embedded_BLE = embedded_BLE + for_each_sequence(position_LE, input_ids_BL, [length, self.size])
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

    Programs for a CPU compute the same in one operation (see kernels/encoder_layers.py).
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

    @property
    def values(self) -> list[paddle.Tensor]:
        """Its parameters, in the order of kernels.encoder_layers.Parameters."""
        attention, norms = self.attention, (self.attention_norm, self.ffn_norm)
        projections = (attention.query, attention.key, attention.value, attention.output)
        first, second = ([norm.scale, norm.bias] for norm in norms)
        of_attention = [value for part in projections for value in (part.weight, part.bias)]
        of_network = [value for part in (self.ffn_in, self.ffn_out) for value in (part.weight, part.bias)]
        return [*of_attention, *first, *of_network, *second]


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
        packed = PackedRows(lengths_B, paddle.shape(input_ids_BL)[1]) if fuses() else None
        layout = packed or SlotRows()
        rows, sizes = self.embeddings(input_ids_BL, sentence_ids_BL, replacement, queries, layout)
        slots_BK = None if queries is None else queries.slots
        numbers_M = None if wanted_M is None else layout.numbers(wanted_M)
        if packed is not None:
            rows = self._fused(rows, paddle.shape(input_ids_BL)[1], packed.starts, slots_BK, numbers_M)
        else:
            shared = self._shared(input_ids_BL, lengths_B, slots_BK, sizes)
            for layer in self.layers:
                with MarkedLayer() if self.training else nullcontext():
                    rows = layer(rows, shared, numbers_M if layer is self.layers[-1] else None)
        if wanted_M is not None and slots_BK is not None:
            sizes = tuple(paddle.shape(x.flatten())[0] for x in (wanted_M, slots_BK))
        context, query_rows = split(rows, sizes)
        context_NH = layout.slots(context) if wanted_M is None else context.flatten(0, 1)
        return context_NH, None if query_rows is None else query_rows.flatten(0, 1)

    def _fused(
        self,
        rows: paddle.Tensor,
        length: paddle.Tensor,
        starts: paddle.Tensor,
        slots_BK: paddle.Tensor | None,
        wanted_M: paddle.Tensor | None,
    ) -> paddle.Tensor:
        """Return the rows, [1, T, H], after all layers, each of which is one operation."""
        config, table = self.config, self.relative
        bias = None if table is None else relative_bias(table, length).unsqueeze(0)
        self_bias = None if table is None or slots_BK is None else table.weight[SELF]
        given, rows_TH = Given(starts, bias, self_bias, slots_BK, wanted_M), rows.flatten(0, 1)
        rates, is_rounded = (config.hidden_dropout_prob, config.attention_probs_dropout_prob), rounds()
        is_rounded = is_rounded and config.hidden_size > SMALL
        settings = Settings(self.heads, config.hidden_act, config.layer_norm_eps, *rates, is_rounded)
        if not self.training:
            return encoder_layers(rows_TH, [layer.values for layer in self.layers], given, settings).unsqueeze(0)
        for layer, key in zip(self.layers, dropout_keys(len(self.layers)), strict=True):
            read = given if layer is self.layers[-1] else given._replace(wanted=None)
            rows_TH = encoder_layer(rows_TH, layer.values, read, key, settings, recomputes())
        return rows_TH.unsqueeze(0)

    def _shared(
        self,
        input_ids_BL: paddle.Tensor,
        lengths_B: paddle.Tensor,
        slots_BK: paddle.Tensor | None,
        sizes: tuple[paddle.Tensor, ...],
    ) -> Shared:
        """Return what all layers read besides the rows."""
        length = paddle.shape(input_ids_BL)[1]
        relative_ALL = None if self.relative is None else relative_bias(self.relative, length)
        padding_B11L = padding_bias(lengths_B, length)
        bias = self._bias(input_ids_BL, length, padding_B11L, relative_ALL)
        if slots_BK is None:
            return Shared(bias)
        if self.relative is None or relative_ALL is None:
            return Shared(bias, padding_B11L, paddle.zeros([1], "float32"), sizes)
        query_bias = padding_B11L + bias_rows(relative_ALL, slots_BK)
        return Shared(bias, query_bias, self.relative.weight[SELF].reshape([1, -1, 1, 1]), sizes)

    def _bias(
        self,
        input_ids_BL: paddle.Tensor,
        length: paddle.Tensor,
        padding_B11L: paddle.Tensor,
        relative_ALL: paddle.Tensor | None,
    ) -> paddle.Tensor:
        """Return what all layers add to the scores, including the padding mask; it broadcasts to [B, A, L, L].

        The scores are by far the largest tensors of a step: this way each layer makes one addition to them, and the
        gradient of the bias is summed over the batch once.
        """
        if relative_ALL is not None:
            return for_each_sequence(relative_ALL, input_ids_BL, [self.heads, length, length]) + padding_B11L
        if on_cpu():
            # There an addition that broadcasts takes four times as long.
            return paddle.expand(padding_B11L, [paddle.shape(input_ids_BL)[0], self.heads, length, length])
        return padding_B11L


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
