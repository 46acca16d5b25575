"""Predictions as JSON objects, one for each example, for users and programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tasks.data.examples import Example, MultipleChoiceExample, SpanExample, TaggingExample
from tasks.data.tag_schemes import entities_of
from tasks.kinds.base import Decoded
from tasks.registry.task import Kind
from tasks.submissions.form import json_id

Record = dict[str, Any]


def records_of(kind: Kind, examples: list[Example], decoded: Decoded) -> list[Record]:
    """Return one JSON object for each example, in order, with its `id` and, depending on the kind of task:

    - classification: label; probabilities, by label;
    - regression: score;
    - multiple_choice: choice, an index; option, its text; probabilities, in the order of the options;
    - span: answer, "" if there is none; start and end, its characters in the context, end exclusive, or null; score,
      the sum of two logits; probability, among the n best answers; na_score if the question may be unanswerable;
    - tagging: tokens; tags; entities, each with type, text, start and end, characters as above, of the example's text.
    """
    make, rows = MAKERS[kind], zip(examples, decoded.answers, decoded.details, strict=True)
    return [{"id": json_id(example.id), **make(example, answer, detail)} for example, answer, detail in rows]


def _label(example: Example, answer: Any, detail: Mapping[str, Any]) -> Record:
    return {"label": answer, **detail}


def _score(example: Example, answer: Any, detail: Mapping[str, Any]) -> Record:
    return {"score": answer}


def _choice(example: Example, answer: Any, detail: Mapping[str, Any]) -> Record:
    assert isinstance(example, MultipleChoiceExample)
    return {"choice": answer, "option": example.options[answer], **detail}


def _answer(example: Example, answer: Any, detail: Mapping[str, Any]) -> Record:
    assert isinstance(example, SpanExample)
    best = next((each for each in detail["n_best"] if each["text"] == answer), None)
    record: Record = {"answer": answer, "start": None, "end": None}
    if best is not None:
        record |= {"start": best["start"], "end": best["start"] + len(answer)}
        record |= {"score": best["score"], "probability": best["probability"]}
    return record | ({"na_score": detail["na_score"]} if "na_score" in detail else {})


def _tags(example: Example, answer: Any, detail: Mapping[str, Any]) -> Record:
    assert isinstance(example, TaggingExample)
    tags, text, spans = detail["tags"], example.text, example.token_spans()
    entities = []
    for entity in entities_of(tags):
        start, end = spans[entity.start].start, spans[entity.end - 1].end
        entities.append({"type": entity.type, "text": text[start:end], "start": start, "end": end})
    return {"tokens": list(example.tokens), "tags": list(tags), "entities": entities}


MAKERS: dict[Kind, Callable[[Example, Any, Mapping[str, Any]], Record]] = {
    "classification": _label,
    "regression": _score,
    "multiple_choice": _choice,
    "span": _answer,
    "tagging": _tags,
}
