"""The layers above the encoder and the losses of classification.

Shape letters: S samples, W labels.
"""

from __future__ import annotations

import paddle
from paddle.nn import functional as F

from ernie_gram.training.job import Feeds, LossTerm
from tasks.kinds.base import LABELS
from tasks.kinds.heads import SentenceHead, mean_term
from tasks.kinds.settings import HeadSettings

Head = SentenceHead


def losses(scores_SW: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the cross entropy of the labels."""
    return [mean_term("cross_entropy", F.cross_entropy(scores_SW, feeds[LABELS.name], reduction="none"))]
