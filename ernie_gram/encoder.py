"""The Transformer encoder: BERT's post-norm block under upstream's parameter names (paper, section 4.1).

Shape letters: B sequences, L slots, N = B * L rows, E embedding size, H hidden, A heads.
"""

from __future__ import annotations

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.attention import SelfAttention, padding_bias
from ernie_gram.config import ModelConfig
from ernie_gram.layers import LayerNorm, Linear, Table
from ernie_gram.relative_position import NUM_BUCKETS, relative_bias


def activation(name: str, x: paddle.Tensor) -> paddle.Tensor:
    """gelu (the exact one, by erf) or relu."""
    return F.gelu(x) if name == "gelu" else F.relu(x)


class Embeddings(nn.Layer):
    """word + position (+ sentence) -> LayerNorm -> dropout (-> mapping to the hidden size)."""

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        size, spread = config.embedding_size, config.initializer_range
        self.word = Table("word_embedding", vocab_size, size, spread)
        self.position = Table("pos_embedding", config.max_position_embeddings, size, spread)
        self.sentence = None
        if config.use_sentence_embedding:
            self.sentence = Table("sent_embedding", config.sent_type_vocab_size, size, spread)
        self.norm = LayerNorm("pre_encoder_layer_norm", size)
        self.dropout = config.hidden_dropout_prob
        self.size = size
        self.mapping = None
        if size != config.hidden_size:
            names = {"weight": "emb_hidden_mapping", "bias": "emb_hidden_mapping_bias"}
            self.mapping = Linear("", size, config.hidden_size, spread, **names)

    def forward(self, input_ids_BL: paddle.Tensor, sentence_ids_BL: paddle.Tensor | None) -> paddle.Tensor:
        """Returns [N, H]."""
        length = paddle.shape(input_ids_BL)[1]
        embedded_BLE = self.word(input_ids_BL) + self.position(paddle.arange(length))
        if self.sentence is not None:
            if sentence_ids_BL is None:
                sentence_ids_BL = paddle.zeros_like(input_ids_BL)
            embedded_BLE = embedded_BLE + self.sentence(sentence_ids_BL)
        embedded_NE = self.norm(embedded_BLE.reshape([-1, self.size]))
        embedded_NE = F.dropout(embedded_NE, self.dropout, training=self.training)
        return embedded_NE if self.mapping is None else self.mapping(embedded_NE)


class Block(nn.Layer):
    """Attention and feed-forward, each: dropout -> residual -> LayerNorm."""

    def __init__(self, name: str, config: ModelConfig) -> None:
        super().__init__()
        hidden, spread = config.hidden_size, config.initializer_range
        self.attention = SelfAttention(
            name, hidden, config.num_attention_heads, config.attention_probs_dropout_prob, spread
        )
        self.attention_norm = LayerNorm(f"{name}_post_att_layer_norm", hidden)
        self.ffn_in = Linear(f"{name}_ffn_fc_0", hidden, 4 * hidden, spread)
        self.ffn_out = Linear(f"{name}_ffn_fc_1", 4 * hidden, hidden, spread)
        self.ffn_norm = LayerNorm(f"{name}_post_ffn_layer_norm", hidden)
        self.act = config.hidden_act
        self.dropout = config.hidden_dropout_prob

    def forward(self, hidden_NH: paddle.Tensor, length: paddle.Tensor, bias_BALL: paddle.Tensor) -> paddle.Tensor:
        attended_NH = self.attention(hidden_NH, length, bias_BALL)
        hidden_NH = self.attention_norm(hidden_NH + F.dropout(attended_NH, self.dropout, training=self.training))
        fed_NH = self.ffn_out(activation(self.act, self.ffn_in(hidden_NH)))
        return self.ffn_norm(hidden_NH + F.dropout(fed_NH, self.dropout, training=self.training))


class Encoder(nn.Layer):
    """Embeddings and blocks; `training` switches the dropouts."""

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.embeddings = Embeddings(config, vocab_size)
        self.relative = None
        if config.use_relative_position:
            self.relative = Table(
                "rel_pos_embedding", NUM_BUCKETS, config.num_attention_heads, config.initializer_range
            )
        self.blocks = nn.LayerList([Block(f"encoder_layer_{i}", config) for i in range(config.num_hidden_layers)])

    def forward(
        self,
        input_ids_BL: paddle.Tensor,
        lengths_B: paddle.Tensor,
        sentence_ids_BL: paddle.Tensor | None = None,
    ) -> paddle.Tensor:
        """Encode slots of tokens, int64 [B, L], of which the first lengths[b] are real. Returns [N, H]."""
        length = paddle.shape(input_ids_BL)[1]
        bias_BALL = padding_bias(lengths_B, length)
        if self.relative is not None:
            # One tensor for all layers, the mask in it: the scores are by far the largest tensors of a step, so
            # they are touched by one addition a layer, and the bias's gradient is summed over the batch once.
            bias_BALL = bias_BALL + relative_bias(self.relative, length)
        hidden_NH = self.embeddings(input_ids_BL, sentence_ids_BL)
        for block in self.blocks:
            hidden_NH = block(hidden_NH, length, bias_BALL)
        return hidden_NH
