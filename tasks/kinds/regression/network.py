"""The layers above the encoder and the losses of regression.

Shape letters: S samples.
"""

from __future__ import annotations

import paddle

from ernie_gram.training.job import Feeds, LossTerm
from tasks.kinds.heads import SentenceHead, mean_term
from tasks.kinds.regression.kind import GOLD_SCORES
from tasks.kinds.settings import HeadSettings

Head = SentenceHead


def losses(scores_S1: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the squared error of the scores, in the square of their unit."""
    return [mean_term("squared_error", (scores_S1.flatten() - feeds[GOLD_SCORES.name]) ** 2)]
