"""The round trip of span answers: gold positions through the encoding and the post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reader.tokenization.tokenizer import Tokenizer
from tasks.kinds.span import Span, SpanFeatures
from tasks.kinds.span_answers import SpanExample, answer_tokens
from tasks.layouts.rows import CharSpan


class Unequal(NamedTuple):
    """An answer that did not come back: its example, the gold text, what came back, and the supposed reason."""

    example: SpanExample
    gold: str
    found: str
    reason: str


def gold_scores(features: SpanFeatures, examples: Sequence[SpanExample]) -> np.ndarray:
    """Return scores that are 1 at the first and the last token of each example's first answer, and 0 elsewhere.

    For an unanswerable question they are 1 at [CLS]. The features are encoded with training=False.
    """
    scores = np.zeros((features.num_units, 2), np.float32)
    for sample, index in enumerate(features.example_of.tolist()):
        unit = features.unit_offsets[sample]
        if examples[index].is_impossible:
            scores[unit] = 1
            continue
        first, stop = answer_tokens(examples[index], features.context(index))
        start, length, _, _ = features.windows[sample]
        for column, token in ((0, first), (1, stop - 1)):
            if start <= token < start + length:
                scores[unit + 1 + token - start, column] = 1
    return scores


def round_trip_exceptions(kind: Span, examples: Sequence[SpanExample], tokenizer: Tokenizer) -> list[Unequal]:
    """Return the answers that differ after the round trip; examples whose answer has no span are left out."""
    examples = [each for each in examples if each.is_impossible or any(answer.span for answer in each.answers or ())]
    features = kind.encode(examples, tokenizer, training=False)
    answers = kind.decode(gold_scores(features, examples), features, examples).answers
    exceptions = []
    for index, (example, found) in enumerate(zip(examples, answers, strict=True)):
        span = next((answer.span for answer in example.answers or () if answer.span), None)
        gold = "" if span is None else example.context[span.start : span.end]
        if found != gold:
            exceptions.append(Unequal(example, gold, found, _reason(kind, features, index, span, gold)))
    return exceptions


def _reason(kind: Span, features: SpanFeatures, index: int, span: CharSpan | None, gold: str) -> str:
    """Return why the answer of an example did not come back."""
    encoding = features.context(index)
    if span is None or encoding.tokens_in(*span)[0] == encoding.tokens_in(*span)[1]:
        return "no token"
    first, stop = encoding.tokens_in(*span)
    by_characters = kind.task.language == "zh"
    length = encoding.ends[stop - 1] - encoding.starts[first] if by_characters else stop - first
    if length > kind.settings.span.max_answer_length:
        return "longer than max_answer_length"
    if encoding.characters_of(first, stop) != tuple(span):
        if gold != gold.strip():
            return "white space at its edges"
        return "does not begin and end at the edges of tokens"
    for sample in np.flatnonzero(features.example_of == index):
        window = features.windows[sample]
        if window.own_start <= first < window.own_stop and stop > window.start + window.length:
            return "ends outside its window"
    return "other"
