"""The network of a task: encoder, head and losses, for the training program and the prediction program.

Shape letters: S samples, B inputs, L slots, N = B * L, M selected slots, O options, H hidden, W width of the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.graph.compute import computing
from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder
from ernie_gram.training.job import Feeds, LossTerm
from ernie_gram.training.program import Program, open_program
from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, SLOTS, Batch, Field
from tasks.data.fields import (
    END_SLOTS,
    GOLD_SCORES,
    LABELS,
    OPTION_COUNTS,
    OPTION_ROWS,
    START_SLOTS,
    TAGS,
)
from tasks.kinds.base import Kind
from tasks.kinds.settings import HeadSettings
from tasks.training.heads import SLOT_OUTPUTS, SentenceHead, SlotHead

SCORES = "scores"
# Added to the logits of options and slots that do not exist.
MASKED_LOGIT = -1e4


class TaskModel(nn.Layer):
    """The encoder and the head of a kind.

    Args:
        config: the shape of the encoder; its dropout rates apply to the encoder.
        vocab_size: rows of the token embedding.
        has_lm_transform: whether the start model has `mask_lm_trans_fc` (see HeadSettings.lm_transform).
    """

    def __init__(self, kind: Kind[Any, Any], config: ModelConfig, vocab_size: int, has_lm_transform: bool) -> None:
        super().__init__()
        self.encoder = Encoder(parameters.encoder(config, vocab_size), config)
        settings = kind.settings.head
        self.head: nn.Layer
        self.by_slot = kind.name in SLOT_OUTPUTS
        if self.by_slot:
            self.head = SlotHead(SLOT_OUTPUTS[kind.name], config, kind.width, settings, has_lm_transform)
        else:
            self.head = SentenceHead(config, kind.width, settings)

    def forward(self, feeds: Feeds) -> paddle.Tensor:
        """Return scores: [B, W] of inputs, or [M, W] of the slots in the field `slots`; of all slots, [N, W], without
        this field."""
        ids_BL, lengths_B = feeds[INPUT_IDS.name], feeds[LENGTHS.name]
        hidden_NH, _ = self.encoder(ids_BL, lengths_B, feeds[SENTENCE_IDS.name])
        if not self.by_slot:
            return self.head(hidden_NH, lengths_B, paddle.shape(ids_BL)[1])
        if SLOTS.name in feeds:
            hidden_NH = paddle.gather(hidden_NH, feeds[SLOTS.name])
        return self.head(hidden_NH)


class TaskNetwork:
    """The Network of a fine-tuning Job (see training/job.py); the arguments are those of TaskModel."""

    def __init__(self, kind: Kind[Any, Any], config: ModelConfig, vocab_size: int, has_lm_transform: bool) -> None:
        self.kind = kind
        self._model = (kind, config, vocab_size, has_lm_transform)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The batch fields that training reads."""
        return self.kind.training_fields

    def losses(self, feeds: Feeds) -> list[LossTerm]:
        """Build the network with dropout, and the losses of the kind."""
        model = TaskModel(*self._model)
        model.train()
        # Losses are float32, whatever the precision of the network.
        return LOSSES[self.kind.name](model(feeds).astype("float32"), feeds, self.kind.settings.head)

    def row_counts(self, batch: Batch) -> list[int]:
        """Return the number of rows of each term of `losses` in a batch."""
        # The last field that training reads has one gold value for each row.
        counts = [len(batch[self.fields[-1].name])]
        if self.kind.name == "multiple_choice" and self.kind.settings.head.option_loss_weight:
            counts.append(int(batch[OPTION_COUNTS.name].sum()))
        return counts

    def scores(self, feeds: Feeds) -> paddle.Tensor:
        """Build the network without dropout; return the scores of the units of a batch, float32 [U, W]."""
        model = TaskModel(*self._model)
        model.eval()
        return model(feeds).astype("float32")


def build_prediction(network: TaskNetwork, precision: str = "float32") -> Program:
    """Build a program over the same parameters that fetches `scores`, float32 [U, W], of the units of a batch.

    The rows are those of Features.unit_rows.
    """
    with open_program(network.kind.input_fields) as opened, computing(precision):
        return opened.finish({SCORES: network.scores(opened.feeds)})


def classification_losses(scores_SW: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the cross entropy of the labels."""
    return [_mean_term("cross_entropy", F.cross_entropy(scores_SW, feeds[LABELS.name], reduction="none"))]


def regression_losses(scores_S1: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the squared error of the scores, in the square of their unit."""
    return [_mean_term("squared_error", (scores_S1.flatten() - feeds[GOLD_SCORES.name]) ** 2)]


def multiple_choice_losses(scores_B1: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the cross entropy of a softmax over the options of a question, as a mean over questions.

    A second term, with settings.option_loss_weight, is the binary cross entropy of every option by itself, as a mean
    over options: upstream pools the options of all questions in its loss for RACE.
    """
    rows_SO, counts_S, labels_S = (feeds[field.name] for field in (OPTION_ROWS, OPTION_COUNTS, LABELS))
    options = paddle.shape(rows_SO)[1]
    logits_SO = paddle.gather(scores_B1.flatten(), rows_SO.flatten()).reshape([-1, options])
    exists_SO = (paddle.arange(options).unsqueeze(0) < counts_S.unsqueeze(1)).astype("float32")
    masked_SO = logits_SO + (1 - exists_SO) * MASKED_LOGIT
    terms = [_mean_term("cross_entropy", F.cross_entropy(masked_SO, labels_S, reduction="none"))]
    if settings.option_loss_weight:
        is_right_SO = (paddle.arange(options).unsqueeze(0) == labels_S.unsqueeze(1)).astype("float32")
        losses_SO = F.binary_cross_entropy_with_logits(logits_SO, is_right_SO, reduction="none") * exists_SO
        terms.append(LossTerm("option", settings.option_loss_weight, losses_SO.sum(), exists_SO.sum()))
    return terms


def span_losses(scores_NW: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the mean cross entropy of the first and the last slot of the answer, each over the slots of the window."""
    length = paddle.shape(feeds[INPUT_IDS.name])[1]
    is_padding_BL = paddle.arange(length).unsqueeze(0) >= feeds[LENGTHS.name].unsqueeze(1)
    logits_BLW = scores_NW.reshape([-1, length, 2]) + (is_padding_BL.astype("float32") * MASKED_LOGIT).unsqueeze(2)
    losses = [
        F.cross_entropy(logits_BLW[:, :, i], feeds[field.name], reduction="none")
        for i, field in enumerate((START_SLOTS, END_SLOTS))
    ]
    return [_mean_term("cross_entropy", (losses[0] + losses[1]) / 2)]


def tagging_losses(scores_MW: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the cross entropy of the tags, as a mean over words."""
    return [_mean_term("cross_entropy", F.cross_entropy(scores_MW, feeds[TAGS.name], reduction="none"))]


def _mean_term(name: str, losses: paddle.Tensor) -> LossTerm:
    """Return a term that is the mean of these losses over all ranks."""
    losses = losses.flatten()
    return LossTerm(name, 1.0, losses.sum(), paddle.shape(losses)[0].astype("float32"))


Losses = Callable[[paddle.Tensor, Feeds, HeadSettings], list[LossTerm]]
LOSSES: dict[str, Losses] = {
    "classification": classification_losses,
    "regression": regression_losses,
    "multiple_choice": multiple_choice_losses,
    "span": span_losses,
    "tagging": tagging_losses,
}
