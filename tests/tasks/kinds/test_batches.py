"""Batches of every kind have the fields that it names, and empty ones can be made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tasks.kinds.catalog import KINDS, kind_of
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import KindSettings
from tasks.kinds.span_answers import Answer, SpanExample
from tasks.kinds.tagging import TaggingExample
from tasks.layouts.rows import CharSpan
from tests.support.own_tasks import KNOWN
from tests.tasks.kinds.tiny import PLACE, tokenizer

EXAMPLES: dict[str, tuple[str, Any]] = {
    "classification": ("rte", [SentenceExample("0", "a b", "c", "entailment", PLACE)]),
    "multi_label": ("moods", [SentenceExample("0", "a b", "c", ("calm", "sad"), PLACE)]),
    "regression": ("stsb", [SentenceExample("0", "a", "c", 2.5, PLACE)]),
    "multiple_choice": ("race", [MultipleChoiceExample("high0", "a", "b", ("c", "d", "e"), 1, PLACE)]),
    "span": ("squad1", [SpanExample("0", "a b", "c", (Answer("b", CharSpan(2, 3)),), False, PLACE)]),
    "tagging": ("conll2003", [TaggingExample("0", ("a", "b"), " ", ("O", "O"), (), PLACE)]),
}


@pytest.mark.parametrize("name", KINDS)
def test_batches_have_the_names_shapes_and_dtypes_of_the_fields(name: str) -> None:
    task, examples = EXAMPLES[name]
    kind = kind_of(KNOWN[task], KindSettings())
    features = kind.encode(examples * 3, tokenizer(), training=True)
    for samples in (np.array([2, 0]), np.zeros(0, np.int64)):
        batch = features.batch(samples)
        fields = {field.name: field for field in (*kind.input_fields, *kind.training_fields)}
        assert batch.keys() == fields.keys()
        sizes: dict[str, int] = {}
        for key, values in batch.items():
            field = fields[key]
            assert values.dtype == field.dtype, key
            assert values.ndim == len(field.shape), key
            for letter, size in zip(field.shape, values.shape, strict=True):
                assert sizes.setdefault(letter, size) == size, key
        if "S" in sizes:
            assert sizes["S"] == len(samples)
