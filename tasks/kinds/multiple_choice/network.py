"""The layers above the encoder and the losses of multiple choice.

Shape letters: S samples, O options, B inputs, which are the options of all samples.
"""

from __future__ import annotations

import paddle
from paddle.nn import functional as F

from ernie_gram.training.job import Feeds, LossTerm
from tasks.kinds.base import LABELS
from tasks.kinds.heads import MASKED_LOGIT, SentenceHead, mean_term
from tasks.kinds.multiple_choice.kind import OPTION_COUNTS, OPTION_ROWS
from tasks.kinds.settings import HeadSettings

Head = SentenceHead


def losses(scores_B1: paddle.Tensor, feeds: Feeds, settings: HeadSettings) -> list[LossTerm]:
    """Return the cross entropy of a softmax over the options of a question, as a mean over questions.

    A second term, with settings.option_loss_weight, is the binary cross entropy of every option by itself, as a mean
    over options: upstream pools the options of all questions in its loss for RACE.
    """
    rows_SO, counts_S, labels_S = (feeds[field.name] for field in (OPTION_ROWS, OPTION_COUNTS, LABELS))
    options = paddle.shape(rows_SO)[1]
    logits_SO = paddle.gather(scores_B1.flatten(), rows_SO.flatten()).reshape([-1, options])
    exists_SO = (paddle.arange(options).unsqueeze(0) < counts_S.unsqueeze(1)).astype("float32")
    masked_SO = logits_SO + (1 - exists_SO) * MASKED_LOGIT
    terms = [mean_term("cross_entropy", F.cross_entropy(masked_SO, labels_S, reduction="none"))]
    if settings.option_loss_weight:
        is_right_SO = (paddle.arange(options).unsqueeze(0) == labels_S.unsqueeze(1)).astype("float32")
        losses_SO = F.binary_cross_entropy_with_logits(logits_SO, is_right_SO, reduction="none") * exists_SO
        terms.append(LossTerm("option", settings.option_loss_weight, losses_SO.sum(), exists_SO.sum()))
    return terms
