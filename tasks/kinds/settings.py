"""Settings of the kinds of tasks: how examples become inputs, and how scores become predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ernie_gram.config import require, require_finite, require_positive

# [CLS], two [SEP], and a few tokens of two texts.
MIN_SEQ_LEN = 8


@dataclass(frozen=True)
class InputSettings:
    """How examples become inputs.

    Attributes:
        max_seq_len: maximum number of slots of an input, with [CLS] and [SEP]. A longer text
            loses its last tokens (paper, appendix B.3); of two texts, the longer one first, as in BERT.
        doc_stride: tokens between the beginnings of two windows of a long context (span) or sentence (tagging).
        max_query_len: maximum number of tokens of a question (span).
    """

    max_seq_len: int = 512
    doc_stride: int = 128
    max_query_len: int = 64

    def __post_init__(self) -> None:
        require(self.max_seq_len >= MIN_SEQ_LEN, "input.max_seq_len", f"must be at least {MIN_SEQ_LEN}")
        require_positive(self, "input", "doc_stride", "max_query_len")


@dataclass(frozen=True)
class SpanSettings:
    """How answers are trained and found (span).

    Attributes:
        windows_without_answer: how training uses the windows of a question that do not contain its answer. "cls": their
            answer is [CLS], as in SQuAD 2.0; "drop": they are left out. Questions without answer are always used.
        n_best: number of candidate answers to keep for each question.
        max_answer_length: maximum length of an answer, in tokens (English) or characters (Chinese).
        null_threshold: a question is unanswerable if the score of "no answer" exceeds that of the best answer by more
            than this number (SQuAD 2.0); null means the threshold that gives the best F1 on the first dev split.
    """

    windows_without_answer: Literal["cls", "drop"] = "cls"
    n_best: int = 20
    max_answer_length: int = 30
    null_threshold: float | None = None

    def __post_init__(self) -> None:
        require_finite(self, "span")
        require_positive(self, "span", "n_best", "max_answer_length")


@dataclass(frozen=True)
class HeadSettings:
    """The layers between the encoder and the scores.

    Attributes:
        sentence_output: what represents an input in classification, regression and multiple choice: "pooled", the
            pooler's output, tanh(h W + b) for the encoder's output h of [CLS]; "cls", h itself.
        lm_transform: put the transform of the model's masked language model (mask_lm_trans_fc), if the model has one,
            under the output layer of span and tagging, as upstream does. PaddleNLP's classes cannot hold it.
        dropout: dropout rate before the output layer.
    """

    sentence_output: Literal["pooled", "cls"] = "pooled"
    lm_transform: bool = True
    dropout: float = 0.1

    def __post_init__(self) -> None:
        require_finite(self, "head")
        require(0 <= self.dropout < 1, "head.dropout", "must lie in [0, 1)")


@dataclass(frozen=True)
class KindSettings:
    """All settings of a kind.

    Attributes:
        input: how examples become inputs.
        span: how answers are trained and found.
        head: the layers between the encoder and the scores.
    """

    input: InputSettings = InputSettings()
    span: SpanSettings = SpanSettings()
    head: HeadSettings = HeadSettings()

    def with_null_threshold(self, threshold: float | None) -> KindSettings:
        """Return the settings with another threshold for "no answer"."""
        return replace(self, span=replace(self.span, null_threshold=threshold))
