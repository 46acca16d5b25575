"""The layers above the encoder and the losses of span extraction.

Shape letters: B inputs, L slots, N = B * L, W = 2: the first and the last token of the answer.
"""

from __future__ import annotations

import paddle
from paddle.nn import functional as F

from ernie_gram.training.job import Feeds, LossTerm
from reader.batches.fields import INPUT_IDS, LENGTHS
from tasks.kinds.heads import MASKED_LOGIT, SlotHead, mean_term
from tasks.kinds.settings import HeadSettings
from tasks.kinds.span.kind import END_SLOTS, START_SLOTS

Head = SlotHead


def losses(scores_NW: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the mean cross entropy of the first and the last slot of the answer, each over the slots of the window."""
    length = paddle.shape(feeds[INPUT_IDS.name])[1]
    is_padding_BL = paddle.arange(length).unsqueeze(0) >= feeds[LENGTHS.name].unsqueeze(1)
    logits_BLW = scores_NW.reshape([-1, length, 2]) + (is_padding_BL.astype("float32") * MASKED_LOGIT).unsqueeze(2)
    losses = [
        F.cross_entropy(logits_BLW[:, :, i], feeds[field.name], reduction="none")
        for i, field in enumerate((START_SLOTS, END_SLOTS))
    ]
    return [mean_term("cross_entropy", (losses[0] + losses[1]) / 2)]
