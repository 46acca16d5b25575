"""The layers above the encoder, and the losses, of each kind of task: from the encoder's rows to scores.

The output layer is called Kind.output. PaddleNLP calls its parameters `classifier.weight` and `classifier.bias`.

Shape letters: B inputs, L slots, N = B * L, M selected slots, H hidden, W width of the scores; S samples, O options.
"""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Pooler, activation
from ernie_gram.model.layers import LayerNorm, Linear, dropout
from ernie_gram.training.job import Feeds, LossTerm
from reader.batches.fields import INPUT_IDS, LENGTHS, SLOTS
from tasks.kinds.base import LABELS, Kind
from tasks.kinds.multiple_choice import OPTION_COUNTS, OPTION_ROWS
from tasks.kinds.span import END_SLOTS, START_SLOTS

# Added to the logits of options and slots that do not exist.
MASKED_LOGIT = -1e4


class KindHead(nn.Layer):
    """The layers above the encoder. A subclass may say which slots it reads, so that others are not computed."""

    def __init__(self, kind: Kind[Any, Any]) -> None:
        super().__init__()
        self.settings, self.gold = kind.settings.head, kind.training_fields[-1].name

    def slots(self, feeds: Feeds) -> paddle.Tensor | None:
        """Return the slots whose rows `forward` takes, int64 [M] as b * L + l, none of them padding; None for all."""
        return None

    def losses(self, scores: paddle.Tensor, feeds: Feeds) -> list[LossTerm]:
        """Return the cross entropy of the gold classes, as a mean over samples or words: scores are logits."""
        return [mean_term("cross_entropy", F.cross_entropy(scores, feeds[self.gold], reduction="none"))]


class SentenceHead(KindHead):
    """Scores of whole inputs: a sentence vector -> dropout -> linear layer. It has no transform (see SlotHead)."""

    def __init__(self, kind: Kind[Any, Any], config: ModelConfig, has_lm_transform: bool) -> None:
        super().__init__(kind)
        self.pooler = Pooler(config) if kind.has_pooler else None
        self.output = output_layer(kind.output, config.hidden_size, kind.width, config)

    def slots(self, feeds: Feeds) -> paddle.Tensor:
        """Return the first slot of each input."""
        shape = paddle.shape(feeds[INPUT_IDS.name])
        return paddle.arange(0, shape[0] * shape[1], shape[1])

    def forward(self, hidden_BH: paddle.Tensor, feeds: Feeds) -> paddle.Tensor:
        """Return the scores of the inputs of a batch, [B, W], for the encoder's rows of their first slots."""
        if self.pooler is not None:
            hidden_BH = self.pooler(hidden_BH)
        return self.output(dropout(hidden_BH, self.settings.dropout, self.training))


class SlotHead(KindHead):
    """Scores of single slots: (transform of the masked language model ->) dropout -> linear layer.

    The transform is that of the model's head over units, low-rank or tied (see pre-training); only the tied one has a
    LayerNorm.
    """

    def __init__(self, kind: Kind[Any, Any], config: ModelConfig, has_lm_transform: bool) -> None:
        super().__init__(kind)
        self.act = config.hidden_act
        self.transform = self.norm = None
        size = config.hidden_size
        if has_lm_transform and self.settings.lm_transform:
            transform, norm = parameters.transform("mask_lm", config)
            self.transform = Linear(transform)
            self.norm = None if norm is None else LayerNorm(norm, config.layer_norm_eps)
            (size,) = transform.bias.shape
        self.output = output_layer(kind.output, size, kind.width, config)

    def slots(self, feeds: Feeds) -> paddle.Tensor | None:
        """Return the field `slots` of a batch, if it has one."""
        return feeds.get(SLOTS.name)

    def forward(self, hidden_MH: paddle.Tensor, feeds: Feeds) -> paddle.Tensor:
        """Return scores, [M, W], of the slots in the field `slots` of a batch; of all slots, [N, W], without it."""
        if self.transform is not None:
            hidden_MH = activation(self.act, self.transform(hidden_MH))
        if self.norm is not None:
            hidden_MH = self.norm(hidden_MH)
        return self.output(dropout(hidden_MH, self.settings.dropout, self.training))


def output_layer(name: str, size: int, width: int, config: ModelConfig) -> Linear:
    """Return a linear layer with the parameters `{name}_w` and `{name}_b`.

    Its weights are drawn from a normal that is not truncated, as in transformers. A fine-tuning is so short that they
    hardly move, and truncation, which makes their standard deviation smaller by an eighth, costs accuracy.
    """
    start = parameters.Normal(config.initializer_range, truncated=False)
    return Linear(parameters.linear(name, size, width, start, ("_w", "_b")))


def mean_term(name: str, losses: paddle.Tensor) -> LossTerm:
    """Return a term that is the mean of these losses over all ranks."""
    losses = losses.flatten()
    return LossTerm(name, 1.0, losses.sum(), paddle.shape(losses)[0].astype("float32"))


class MultiLabelHead(SentenceHead):
    """Logits of the labels, each by itself."""

    def losses(self, scores_SW: paddle.Tensor, feeds: Feeds) -> list[LossTerm]:
        """Return the sigmoid cross entropy of the labels, as a mean over labels and samples."""
        losses_SW = F.binary_cross_entropy_with_logits(scores_SW, feeds[self.gold], reduction="none")
        return [mean_term("sigmoid_cross_entropy", losses_SW.mean(1))]


class RegressionHead(SentenceHead):
    """A score, in its own unit."""

    def losses(self, scores_S1: paddle.Tensor, feeds: Feeds) -> list[LossTerm]:
        """Return the squared error of the scores, in the square of their unit."""
        return [mean_term("squared_error", (scores_S1.flatten() - feeds[self.gold]) ** 2)]


class MultipleChoiceHead(SentenceHead):
    """The logit of each option; the options of all samples are the inputs."""

    def losses(self, scores_B1: paddle.Tensor, feeds: Feeds) -> list[LossTerm]:
        """Return the cross entropy of a softmax over the options of a question, as a mean over questions."""
        rows_SO, counts_S, labels_S = (feeds[field.name] for field in (OPTION_ROWS, OPTION_COUNTS, LABELS))
        options = paddle.shape(rows_SO)[1]
        logits_SO = paddle.gather(scores_B1.flatten(), rows_SO.flatten()).reshape([-1, options])
        exists_SO = (paddle.arange(options).unsqueeze(0) < counts_S.unsqueeze(1)).astype("float32")
        masked_SO = logits_SO + (1 - exists_SO) * MASKED_LOGIT
        return [mean_term("cross_entropy", F.cross_entropy(masked_SO, labels_S, reduction="none"))]


class SpanHead(SlotHead):
    """The logits of a slot as the first and the last one of the answer."""

    def losses(self, scores_NW: paddle.Tensor, feeds: Feeds) -> list[LossTerm]:
        """Return the mean cross entropy of the first and the last slot of the answer, over the slots of a window."""
        length = paddle.shape(feeds[INPUT_IDS.name])[1]
        is_padding_BL = paddle.arange(length).unsqueeze(0) >= feeds[LENGTHS.name].unsqueeze(1)
        logits_BLW = scores_NW.reshape([-1, length, 2]) + (is_padding_BL.astype("float32") * MASKED_LOGIT).unsqueeze(2)
        losses = [
            F.cross_entropy(logits_BLW[:, :, i], feeds[field.name], reduction="none")
            for i, field in enumerate((START_SLOTS, END_SLOTS))
        ]
        return [mean_term("cross_entropy", (losses[0] + losses[1]) / 2)]
