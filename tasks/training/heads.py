"""Output layers of the kinds of tasks: from the encoder's rows to scores.

Parameter names are upstream's where it has them: `cls_out_w` and `cls_out_b` (classification, regression, multiple
choice), `cls_mrc_out_w/b` (span), `cls_seq_label_out_w/b` (tagging). PaddleNLP calls all of them `classifier.weight`
and `classifier.bias`.

Shape letters: B inputs, L slots, N = B * L, M selected slots, H hidden, W width of the scores.
"""

from __future__ import annotations

import paddle
from paddle import nn

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import activation
from ernie_gram.model.layers import LayerNorm, Linear, dropout, optional
from ernie_gram.model.pooler import Pooler
from tasks.kinds.settings import HeadSettings

# The name of the output layer of each kind whose scores belong to slots.
SLOT_OUTPUTS = {"span": "cls_mrc_out", "tagging": "cls_seq_label_out"}


class SentenceHead(nn.Layer):
    """Scores of whole inputs: a sentence vector -> dropout -> linear layer."""

    def __init__(self, config: ModelConfig, width: int, settings: HeadSettings) -> None:
        super().__init__()
        self.hidden_size = config.hidden_size
        self.kind, self.dropout = settings.sentence_output, settings.dropout
        self.pooler = Pooler(config) if self.kind == "pooled" else None
        self.output = output_layer("cls_out", config.hidden_size, width, config)

    def forward(self, hidden_NH: paddle.Tensor, lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
        """Return scores, [B, W]. Args: the encoder's rows, the number of slots of each input, int64 [B], and L."""
        vector_BH = dropout(self._vector(hidden_NH, lengths_B, length), self.dropout, self.training)
        return self.output(vector_BH)

    def _vector(self, hidden_NH: paddle.Tensor, lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
        if self.pooler is not None:
            return self.pooler(hidden_NH, length)
        hidden_BLH = hidden_NH.reshape([-1, length, self.hidden_size])
        if self.kind == "cls":
            return hidden_BLH[:, 0]
        filled_BL = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).astype(hidden_BLH.dtype)
        return (hidden_BLH * filled_BL.unsqueeze(2)).sum(1) / lengths_B.astype(hidden_BLH.dtype).unsqueeze(1)


class SlotHead(nn.Layer):
    """Scores of single slots: (transform of the masked language model ->) dropout -> linear layer.

    The transform is that of the model's head over units, low-rank or tied (see pre-training); only the tied one has a
    LayerNorm.
    """

    def __init__(
        self, name: str, config: ModelConfig, width: int, settings: HeadSettings, has_lm_transform: bool
    ) -> None:
        super().__init__()
        self.act, self.dropout = config.hidden_act, settings.dropout
        self.transform = self.norm = None
        size = config.hidden_size
        if has_lm_transform and settings.lm_transform:
            declared = parameters.transform("mask_lm", config)
            self.transform = Linear(declared.linear)
            self.norm = optional(lambda norm: LayerNorm(norm, config.layer_norm_eps), declared.norm)
            size = declared.size
        self.output = output_layer(name, size, width, config)

    def forward(self, hidden_MH: paddle.Tensor) -> paddle.Tensor:
        """Return scores, [M, W], of the encoder's rows of some slots."""
        if self.transform is not None:
            hidden_MH = activation(self.act, self.transform(hidden_MH))
        if self.norm is not None:
            hidden_MH = self.norm(hidden_MH)
        return self.output(dropout(hidden_MH, self.dropout, self.training))


def output_layer(name: str, size: int, width: int, config: ModelConfig) -> Linear:
    """Return a linear layer with the parameters `{name}_w` and `{name}_b`.

    Its weights are drawn from a normal that is not truncated, as in transformers. A fine-tuning is so short that they
    hardly move, and truncation, which makes their standard deviation smaller by an eighth, costs accuracy.
    """
    start = parameters.Normal(config.initializer_range, truncated=False)
    return Linear(parameters.linear(name, size, width, start, ("_w", "_b")))
