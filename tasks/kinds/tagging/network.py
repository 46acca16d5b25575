"""The layers above the encoder and the losses of tagging.

Shape letters: M words, W tags.
"""

from __future__ import annotations

import paddle
from paddle.nn import functional as F

from ernie_gram.training.job import Feeds, LossTerm
from tasks.kinds.heads import SlotHead, mean_term
from tasks.kinds.settings import HeadSettings
from tasks.kinds.tagging.kind import TAGS

Head = SlotHead


def losses(scores_MW: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the cross entropy of the tags, as a mean over words."""
    return [mean_term("cross_entropy", F.cross_entropy(scores_MW, feeds[TAGS.name], reduction="none"))]
