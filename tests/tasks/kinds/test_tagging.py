"""Tagging: windows and first tokens against a slow reference, repaired tags, and entities inside others."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import InputSettings, KindSettings
from tasks.kinds.tagging import TaggingExample
from tasks.metrics.entities import Entity, entities_of, tags_of
from tasks.registry import TASKS
from tests.tasks.kinds.test_examples import NER, make
from tests.tasks.kinds.test_features import reference_owner, reference_windows
from tests.tasks.kinds.test_span import pieces
from tests.tasks.kinds.tiny import LETTERS, PLACE, checked_batch, tokenizer, tokens_of_input

SETTINGS = KindSettings(InputSettings(max_seq_len=10, max_query_len=4, doc_stride=3))


def random_examples(count: int) -> list[TaggingExample]:
    rng = random.Random(5)
    examples = []
    for i in range(count):
        words = tuple(
            "".join(rng.choice(LETTERS) for _ in range(rng.choice([1, 1, 2, 3, 12]))) for _ in range(rng.randint(1, 14))
        )
        tags = tuple(rng.choice(["O", "B-PER", "B-LOC", "B-MISC"]) for _ in words)
        examples.append(TaggingExample(str(i), words, " ", tags, entities_of(tags), PLACE))
    return examples


def test_every_word_is_predicted_once_in_the_window_with_most_context() -> None:
    examples = random_examples(60)
    kind = kind_of(TASKS["conll2003"], SETTINGS)
    features = kind.encode(examples, tokenizer(), training=True)
    expected = []
    for index, example in enumerate(examples):
        tokens = [token for token, _ in pieces(" ".join(example.tokens))]
        firsts = [position for position, token in enumerate(tokens) if not token.startswith("##")]
        windows = reference_windows(len(tokens), 8, 3)
        owners = [reference_owner(position, windows) for position in firsts]
        for number, (start, length) in enumerate(windows):
            words = [i for i, owner in enumerate(owners) if owner == number]
            if words:
                slots = [firsts[i] - start + 1 for i in words]
                tags = [example.tags[i] for i in words]
                expected.append((index, ["[CLS]", *tokens[start : start + length], "[SEP]"], slots, tags))
    assert len(features) == len(expected) > len(examples)
    shortest = np.argsort(features.lengths)[:5]
    assert features.lengths[shortest].max() < 10
    for samples in (np.random.default_rng(0).permutation(len(features))[:20], shortest):
        batch = checked_batch(features, samples, expected)
        assert [kind.classes[i] for i in batch["tags"]] == [tag for sample in samples for tag in expected[sample][3]]
    assert features.num_units == sum(len(example.tokens) for example in examples)
    assert features.counts["examples longer than an input"] == sum(
        sum(map(len, example.tokens)) > 8 for example in examples
    )


def test_tags_that_continue_nothing_are_read_as_conlleval_reads_them() -> None:
    kind = kind_of(TASKS["conll2003"], KindSettings())
    example = TaggingExample("0", tuple("abcde"), " ", None, None, PLACE)
    features = kind.encode([example], tokenizer(), training=False)
    raw = ["I-PER", "I-LOC", "I-LOC", "O", "I-PER"]
    scores = np.eye(kind.width, dtype=np.float32)[[kind.classes.index(tag) for tag in raw]]
    assert kind.decode(scores, features, [example]).for_metric == [["B-PER", "B-LOC", "I-LOC", "O", "B-PER"]]
    assert "tags" not in features.batch(np.array([0]))


def test_characters_are_tokens_and_a_space_keeps_its_tag() -> None:
    kind = kind_of(TASKS["msra_ner"], KindSettings())
    tags = ("B-PER", "I-PER", "O", "O", "B-LOC")
    example = TaggingExample("0", ("一", "2", "3", " ", "十"), "", tags, entities_of(tags), PLACE)
    features = kind.encode([example], tokenizer(), training=True)
    assert tokens_of_input(features, 0) == ["[CLS]", "一", "2", "3", "[UNK]", "十", "[SEP]"]
    assert features.batch(np.array([0]))["slots"].tolist() == [1, 2, 3, 4, 5]


def test_cluener_takes_entities_as_characters_and_knows_those_inside_others() -> None:
    kind = kind_of(TASKS["cluener"], KindSettings())
    entities = (Entity("address", 0, 4), Entity("name", 1, 3), Entity("name", 5, 6))
    tokens = tuple("一二三四ab")
    example = TaggingExample("0", tokens, "", tags_of(entities, 6), entities, PLACE)
    features = kind.encode([example], tokenizer(), training=True)
    gold = {"address": {"一二三四": [[0, 3]]}, "name": {"二三": [[1, 2]], "b": [[5, 5]]}}
    assert kind.gold([example]) == [gold]
    predictions = kind.decode(np.eye(kind.width, dtype=np.float32)[features.unit_gold["tags"]], features, [example])
    # One row of tags cannot express the name inside the address.
    assert predictions.for_metric == [{"address": {"一二三四": [[0, 3]]}, "name": {"b": [[5, 5]]}}]
    assert kind.evaluate(predictions)["address_f1"] == 1.0


@pytest.mark.parametrize(("start", "end"), [(1, 3), (1, 2), (1, 4), (0, 3), (2, 3)])
def test_an_entity_is_where_its_text_is(start: int, end: int) -> None:
    example = make(NER, text="abcde", entities=[("LOC", start, end, "bc")])
    assert example.entities == (Entity("LOC", 1, 3),)
