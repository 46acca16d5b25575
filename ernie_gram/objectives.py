"""The loss terms, and how they add up.

A term is a record: its name, its weight, the batch fields it reads, and a function to the loss of every row it
predicts. Each term counts as the mean over its own rows in the whole batch, all processes together;
the objective is sum of weight x term.

Shape letters: N context slots of the batch, M predicted slots, H hidden, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import paddle
from paddle.nn import functional as F

from ernie_gram.config import ObjectiveConfig
from ernie_gram.model import PretrainModel
from reader import batch as fields
from reader.batch import Field

Feeds = dict[str, paddle.Tensor]


@dataclass(frozen=True)
class Rows:
    """What a term says of each row it predicts: loss, float32 [M], and scores over the classes, [M, C]."""

    loss: paddle.Tensor
    scores: paddle.Tensor


@dataclass(frozen=True)
class Term:
    """A part of the objective.

    Attributes:
        name: as logged.
        labels: the batch field with the right classes.
        weight: in the sum.
        rows: (model, hidden [N, H], feeds) -> Rows.
    """

    name: str
    labels: Field
    weight: float
    rows: Callable[[PretrainModel, paddle.Tensor, Feeds], Rows]


def prediction(labels: Field) -> Callable[[PretrainModel, paddle.Tensor, Feeds], Rows]:
    """-log p(label | context) at every predicted slot, by the head "mask_lm"."""

    def rows(model: PretrainModel, hidden_NH: paddle.Tensor, feeds: Feeds) -> Rows:
        hidden_MH = paddle.gather(hidden_NH, feeds[fields.SLOTS.name])
        scores_MC = model.head(hidden_MH).astype("float32")
        loss = F.cross_entropy(scores_MC, feeds[labels.name], reduction="none")
        return Rows(loss.flatten(), scores_MC)

    return rows


def terms_of(config: ObjectiveConfig) -> list[Term]:
    """The terms a config asks for.

    "coarse" (equation 2): the identity of the unit behind each explicit mask.
    "token" (equation 1): every token behind contiguous masks.
    """
    if config.masking == "explicit":
        return [Term("coarse", fields.COARSE_LABELS, 1.0, prediction(fields.COARSE_LABELS))]
    return [Term("token", fields.TOKEN_LABELS, 1.0, prediction(fields.TOKEN_LABELS))]
