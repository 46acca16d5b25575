"""Span extraction: a question and a context -> the part of the context that answers the question, or none.

Inputs: [CLS] question [SEP] window of the context [SEP].

Shape letters: S samples, which are windows, and B inputs, B = S; U units: [CLS] and the tokens of each window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ernie_gram.config import require
from reader.batches.fields import SLOTS, Field
from reader.system.arrays import Float32s, offsets_of, range_indices
from tasks.kinds.base import ANY_KIND, ENCODER_FIELDS, Kind, Predictions
from tasks.kinds.checked_values import text_of
from tasks.kinds.features import Features, InputsBuilder, TokenTable, Window, tokenize, windows_of
from tasks.kinds.settings import KindSettings
from tasks.kinds.span_answers import SpanExample, answer_tokens, best_spans, read_example
from tasks.kinds.task import Task
from tasks.layouts.rows import ID, Role
from tasks.metrics.answers import squad_v2

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Encoding, Tokenizer

# The field `slots` has [CLS] and the context of each window, in prediction.
START_SLOTS = Field("start_slots", "B", "int64", "first slot of the answer; 0, [CLS], if the window has none")
END_SLOTS = Field("end_slots", "B", "int64", "last slot of the answer, inclusive; 0, [CLS], if the window has none")
# The score of the best answer if the context has no token.
NO_ANSWER_SCORE = -1e4
# The first and the last slot of the answer of a window without one: [CLS].
NO_ANSWER = (0, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class SpanFeatures(Features):
    """A sample is a window of a context; its units are [CLS] and the tokens of the window.

    Attributes:
        table: the tokens of questions (the first half of its texts) and contexts (the second half).
        windows: the window of each sample, in tokens of its context.
    """

    table: TokenTable
    windows: Sequence[Window]

    def context(self, example: int) -> Encoding:
        """Return the tokens of the context of an example, with their characters."""
        return self.table[len(self.table.rows) // 2 + example]


class Span(Kind[SpanExample, SpanFeatures]):
    """The two scores of a unit are its logits as the first and as the last token of the answer."""

    name = "span"
    # Answers are texts, or dicts with `text` and `answer_start`.
    roles = (
        Role("context"),
        Role("question"),
        Role("answers", is_gold=True, is_list=True),
        Role("is_impossible", needed=False, is_gold=True, may_lack=True),
        ID,
    )
    layouts = (*ANY_KIND, "squad", "dureader_documents")
    task_fields = ("unanswerable",)
    metrics = ("squad_v1", "squad_v2", "cmrc2018", "dureader_robust")
    submission = "squad"
    head = "tasks.kinds.networks.SpanHead"
    num_scores = 2
    output = "cls_mrc_out"
    paddlenlp_class = "ErnieGramForQuestionAnswering"
    input_fields = (*ENCODER_FIELDS, SLOTS)
    training_fields = (*ENCODER_FIELDS, START_SLOTS, END_SLOTS)
    read_example = staticmethod(read_example)

    def __init__(self, task: Task, settings: KindSettings) -> None:
        """Raises InputError if a question may leave no room for its context."""
        super().__init__(task, settings)
        limit = settings.input.max_seq_len - 4
        reason = f"exceeds input.max_seq_len - 4, {limit}; give --input.max_query_len {limit} or less"
        require(settings.input.max_query_len <= limit, "input.max_query_len", reason)

    def encode(self, examples: Sequence[SpanExample], tokenizer: Tokenizer, training: bool) -> SpanFeatures:
        """Return the features. In training, the first answer that has a span is the gold one.

        A question loses the tokens beyond max_query_len. An example whose answer has no token, such as white space, is
        left out of training.
        """
        settings, count = self.settings.input, len(examples)
        texts = [example.question for example in examples] + [example.context for example in examples]
        table = tokenize(tokenizer.encode_batch, texts, "starts", "ends")
        builder, samples = InputsBuilder(tokenizer.vocabulary), list[tuple[int, Window]]()
        slots, counts = list[tuple[int, int]](), Counter[str]()
        for index, example in enumerate(examples):
            question, context = table[index].ids[: settings.max_query_len], table[count + index]
            room = settings.max_seq_len - 3 - len(question)
            answer = answer_tokens(example, context) if training else (0, 0)
            is_found = False
            for window in windows_of(len(context), room, settings.doc_stride):
                gold = self._gold_slots(example, answer, window, len(question) + 2)
                if training and gold is None:
                    counts["windows left out of training"] += 1
                    continue
                builder.add([question], [context.ids[window.start : window.start + window.length]])
                samples.append((index, window))
                slots.append(gold or NO_ANSWER)
                is_found |= slots[-1] != NO_ANSWER
            counts["examples longer than an input"] += len(context) > room
            counts["truncated questions"] += len(table[index]) > len(question)
            # If input.doc_stride is nearly the room of a window, windows hardly overlap.
            counts["answers in no window"] += training and not example.is_impossible and not is_found
        starts, ends = np.array(slots, np.int64).reshape(-1, 2).T
        inputs, lengths = builder.inputs(), np.array([window.length + 1 for _, window in samples], np.int64)
        unit_offsets = offsets_of(lengths)
        # The slots of a window follow each other; that of [CLS] is 0.
        unit_slots = None if training else range_indices(inputs.seconds - np.int64(1), lengths).astype(np.int32)
        if unit_slots is not None:
            unit_slots[unit_offsets[:-1]] = 0
        return SpanFeatures(
            inputs=inputs,
            input_offsets=np.arange(len(samples) + 1),
            unit_offsets=unit_offsets,
            slots=unit_slots,
            example_of=np.array([index for index, _ in samples], np.int64),
            counts=counts,
            table=table,
            windows=[window for _, window in samples],
            gold={START_SLOTS.name: starts, END_SLOTS.name: ends} if training else {},
        )

    def _gold_slots(
        self, example: SpanExample, answer: tuple[int, int], window: Window, second: int
    ) -> tuple[int, int] | None:
        """Return the first and the last slot of an answer in a window, [CLS] if it has none; None to leave it out.

        `answer` has its tokens [first, stop) in the context, and `second` is the slot at which the window begins.
        """
        first, stop = answer
        if window.start <= first < stop <= window.start + window.length:
            return first + second - window.start, stop - 1 + second - window.start
        # An answer without tokens is an empty range.
        drops = self.settings.span.windows_without_answer == "drop" or first == stop
        return None if drops and not example.is_impossible else NO_ANSWER

    def decode(self, scores: Float32s, features: SpanFeatures, examples: Sequence[SpanExample]) -> Predictions:
        """Return the text of the best answer of each question, as in the context.

        The score of an answer is the sum of the logits of its first and its last token. They are in the same window,
        the one to which the first token belongs. Of equally good answers the first one counts, then the shortest.

        If questions may be unanswerable: the score of "no answer" is the least score of [CLS] over the windows, as in
        BERT, and `na_score` of a question is that score minus the score of its best answer. The answer is "" if
        `na_score` exceeds the threshold (see SpanSettings.null_threshold).
        """
        from scipy.special import softmax

        bounds = np.searchsorted(features.example_of, np.arange(len(examples) + 1))
        texts, details = list[str](), list[dict[str, Any]]()
        settings = self.settings.span
        for index, example in enumerate(examples):
            samples = range(bounds[index], bounds[index + 1])
            candidates = best_spans(
                features.windows[samples.start : samples.stop],
                [scores[features.unit_offsets[i] + 1 : features.unit_offsets[i + 1]] for i in samples],
                example.context,
                features.context(index),
                settings.n_best,
                settings.max_answer_length,
                by_characters=self.task.language == "zh",
            )
            # A context without tokens has no candidates.
            probabilities = softmax(np.array([each.score for each in candidates])) if candidates else np.zeros(0)
            texts.append(candidates[0].text if candidates else "")
            scored = zip(candidates, probabilities, strict=True)
            details.append({"n_best": [{**each._asdict(), "probability": float(share)} for each, share in scored]})
            if self.task.unanswerable:
                best = candidates[0].score if candidates else NO_ANSWER_SCORE
                no_answer = min(float(scores[features.unit_offsets[sample]].sum()) for sample in samples)
                details[-1]["na_score"] = no_answer - best
        if not self.task.unanswerable:
            return self.predictions(examples, texts, details)
        na_scores = [detail["na_score"] for detail in details]
        for_metric, na_prob = self.keyed(texts, examples), self.keyed(na_scores, examples)
        threshold = settings.null_threshold
        if threshold is None:
            threshold = best_threshold(self.gold(examples), for_metric, na_prob)
        answers = ["" if na_score > threshold else text for text, na_score in zip(texts, na_scores, strict=True)]
        # The metric of all such tasks, squad_v2, applies the threshold itself, and also finds the best one.
        options = {"na_prob": na_prob, "threshold": threshold}
        return Predictions(self.task, examples, answers, details, for_metric, options)

    def record(self, example: SpanExample, answer: str, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer, "" if there is none, with its position and scores.

        start and end: its characters in the context; score: the sum of two logits; probability: among the n best
        answers; all four are null if there is no answer. na_score: if the question may be unanswerable.
        """
        best = next((each for each in detail["n_best"] if each["text"] == answer), None)
        record: dict[str, Any] = {"answer": answer, "start": None, "end": None, "score": None, "probability": None}
        if best is not None:
            record |= {"start": best["start"], "end": best["start"] + len(answer)}
            record |= {"score": best["score"], "probability": best["probability"]}
        return record | ({"na_score": detail["na_score"]} if "na_score" in detail else {})

    def answer_of(self, value: Any, example: SpanExample) -> str:
        """Return the text, which is "" if there is no answer."""
        return text_of(value, "the answer", may_be_empty=True)

    def gold_value(self, example: SpanExample) -> list[str]:
        """Return the texts of all gold answers."""
        return [answer.text for answer in example.answers or ()]


def best_threshold(
    gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str], na_prob: Mapping[str, float]
) -> float:
    """Return the threshold with the best F1: the official one, or one below all scores if that is better.

    The official script gives 0 where "no answer" to every question is best.
    """
    thresholds = squad_v2(gold, predictions, na_prob)["best_f1_thresh"], min(na_prob.values()) - 1.0
    return max(thresholds, key=lambda threshold: squad_v2(gold, predictions, na_prob, threshold)["f1"])
