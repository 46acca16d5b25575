"""Replaced token detection: is the unit in a slot the original one, or a sample of the generator (section 3.4)?"""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.model.attention import padding_bias
from ernie_gram.model.encoder import activation
from ernie_gram.model.layers import Linear
from ernie_gram.model.parameters import LinearParameters, Normal, linear
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.term import Encoded, Term
from ernie_gram.pretraining.trunk import Trunk
from reader.batches import fields
from reader.batches.fields import Batch


class DetectionHead(nn.Layer):
    """One logit of "replaced" per row, gelu(H W) w + b, as in ELECTRA; the paper does not give its form."""

    def __init__(self, transform: LinearParameters, output: LinearParameters, act: str) -> None:
        super().__init__()
        self.transform, self.output, self.act = Linear(transform), Linear(output), act

    def forward(self, hidden_NH: paddle.Tensor) -> paddle.Tensor:
        """Return the logits, [N]."""
        return self.output(activation(self.act, self.transform(hidden_NH))).flatten()


class ReplacedTokens(Term):
    """Binary cross entropy of "replaced" at every non-padding slot (equation 6).

    A sample that equals the original unit counts as original.
    """

    name = "rtd"
    reads_context = True
    fields = (fields.COARSE_LABELS,)

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        feeds = encoded.feeds
        assert encoded.generated is not None
        assert encoded.context is not None
        assert encoded.generated.sampled is not None
        length = paddle.shape(feeds[fields.INPUT_IDS.name])[1]
        # -log sigmoid(-z) for originals, -log sigmoid(z) for replacements.
        logits_N = layer(encoded.context).astype("float32")
        replaced_M = (encoded.generated.sampled != feeds[fields.COARSE_LABELS.name]).astype("float32")
        replaced_N = paddle.scatter(paddle.zeros_like(logits_N), feeds[fields.SLOTS.name], replaced_M)
        real_N = (padding_bias(feeds[fields.LENGTHS.name], length) == 0).astype("float32").flatten()
        loss_N = F.binary_cross_entropy_with_logits(logits_N, replaced_N, reduction="none") * real_N
        return loss_N.sum(), real_N.sum()

    def num_rows(self, batch: Batch) -> int:
        return int(batch[fields.LENGTHS.name].sum())

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> tuple[LinearParameters, LinearParameters]:
        size, start = config.model.hidden_size, Normal(config.model.initializer_range)
        return linear("rtd_trans_fc", size, size, start), linear("rtd_out_fc", size, 1, start)

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> DetectionHead:
        return DetectionHead(*self.parameters(config, sizes), config.model.hidden_act)

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> dict[str, int]:
        return {"detection": 2 * shape.rows * config.model.hidden_size**2}
