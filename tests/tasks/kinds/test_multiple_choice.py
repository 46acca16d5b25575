"""Multiple choice: inputs of options, batches of uneven questions, and assignment of shared options."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tasks.kinds.catalog import kind_of
from tasks.kinds.features import Features
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.settings import InputSettings, KindSettings
from tasks.layouts.rows import CharSpan
from tasks.registry import TASKS
from tests.tasks.kinds.test_sentences import random_words, reference_pair
from tests.tasks.kinds.tiny import LETTERS, PLACE, tokenizer, tokens_of_input


def example(context: str, question: str, options: tuple[str, ...], answer: int | None = 0, **more: object):
    return MultipleChoiceExample(str(more.pop("id", "high0")), context, question, options, answer, PLACE, **more)


def inputs_of(features: Features) -> list[str]:
    return [" ".join(tokens_of_input(features, row)) for row in range(len(features.inputs.offsets) - 1)]


def encode(examples: list[MultipleChoiceExample], max_seq_len: int = 64, task: str = "race") -> Features:
    kind = kind_of(TASKS[task], KindSettings(InputSettings(max_seq_len, max_query_len=2)))
    return kind.encode(examples, tokenizer(), training=True)


def test_an_option_follows_the_question_or_fills_its_gaps_or_the_blank_of_the_context() -> None:
    gaps = example("a", "c_ d __.", ("h i", "j", "k"), 2, has_gaps=True)
    features = encode([example("a b", "c d", ("e", "f g"), 1), gaps])
    assert inputs_of(features) == [
        "[CLS] a b [SEP] c d e [SEP]",
        "[CLS] a b [SEP] c d f g [SEP]",
        "[CLS] a [SEP] c h i d h i . [SEP]",
        "[CLS] a [SEP] c j d j . [SEP]",
        "[CLS] a [SEP] c k d k . [SEP]",
    ]
    batch = features.batch(np.array([1, 0]))
    assert batch["input_ids"].shape == (5, 11)
    assert batch["option_rows"].tolist() == [[0, 1, 2], [3, 4, 0]]
    assert batch["option_counts"].tolist() == [3, 2]
    assert batch["labels"].tolist() == [2, 1]
    assert features.unit_rows(np.array([1, 0])).tolist() == [2, 3, 4, 0, 1]
    assert features.lengths.tolist() == [9, 11]
    assert batch["sentence_ids"][0].tolist() == [0] * 3 + [1] * 8
    features = encode([example("a b ____ c d", "", ("x y", "z"), blank=CharSpan(4, 8))], task="chid")
    assert inputs_of(features) == ["[CLS] a b x y c d [SEP]", "[CLS] a b z c d [SEP]"]
    assert not features.batch(np.array([0]))["sentence_ids"].any()


def test_a_long_context_is_cut_around_its_blank() -> None:
    letters = LETTERS[:20]
    for left in range(21):
        context = " ".join(letters[:left]) + " ____ " + " ".join(letters[left:])
        start = context.index("____")
        features = encode([example(context, "", ("9 8", "7"), blank=CharSpan(start, start + 4))], 12, "chid")
        first, second = (text.split()[1:-1] for text in inputs_of(features))
        for tokens, option in ((first, ["9", "8"]), (second, ["7"])):
            assert len(tokens) == 10
            place = tokens.index(option[0])
            before, after = tokens[:place], tokens[place + len(option) :]
            assert tokens[place : place + len(option)] == option
            assert "".join(before) == letters[left - len(before) : left]
            assert "".join(after) == letters[left : left + len(after)]
            # Balanced, unless one side is too short.
            assert abs(len(before) - len(after)) <= 1 or min(left, 20 - left) in (len(before), len(after))
        assert features.counts == {"truncated inputs": 2}


def test_every_option_is_truncated_for_itself() -> None:
    # Upstream truncates the context of an option to what was left of it for the option before.
    rng = random.Random(3)
    examples, expected, num_long = [], [], 0
    for _ in range(100):
        context, question, *options = (random_words(rng, size) for size in (20, 12, *[12] * rng.randint(2, 4)))
        examples.append(example(" ".join(context), " ".join(question), tuple(map(" ".join, options))))
        expected += [" ".join(reference_pair(context, question, 14, option)) for option in options]
        num_long += sum(len([*context, *question, *option]) > 14 - 3 for option in options)
    features = encode(examples, 14)
    assert inputs_of(features) == expected
    assert features.counts == {"truncated inputs": num_long}


def test_the_best_option_wins_and_groups_share_their_options() -> None:
    rng = np.random.default_rng(4)
    kind = kind_of(TASKS["chid"], KindSettings())
    groups = ["a", "b", "a", None, "a", "b"]
    examples = [
        example("a ____", "", ("b", "c", "d", "e"), 0, id=f"#{i}", blank=CharSpan(2, 6), group=group)
        for i, group in enumerate(groups)
    ]
    features = kind.encode(examples, tokenizer(), training=False)
    collisions = 0
    for _ in range(30):
        scores = rng.standard_normal((24, 1)).astype(np.float32)
        logits = scores.reshape(6, 4).astype(np.float64)
        log_probabilities = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected = {f"#{i}": int(row.argmax()) for i, row in enumerate(logits)}
        collisions += len({expected["#0"], expected["#2"], expected["#4"]}) < 3
        for members in ([0, 2, 4], [1, 5]):
            chosen = max(
                itertools.permutations(range(4), len(members)),
                key=lambda options: sum(log_probabilities[i, o] for i, o in zip(members, options, strict=True)),
            )
            expected |= {f"#{i}": option for i, option in zip(members, chosen, strict=True)}
        predictions = kind.decode(scores, features, examples)
        assert predictions.for_metric == expected
        assert predictions.answers == list(expected.values())
        assert predictions.details[3]["probabilities"] == pytest.approx(np.exp(log_probabilities[3]).tolist())
    assert collisions > 5
    # A group larger than its options keeps an answer for every example.
    examples = [example("a", "", ("b", "c"), id=str(i), group="g") for i in range(3)]
    examples.append(example("a", "", ("b", "c", "d"), id="3"))
    features = kind.encode(examples, tokenizer(), training=False)
    scores = np.array([5, 0, 0, 4, 1, 0, 0, 0, 9], np.float32)[:, np.newaxis]
    predictions = kind.decode(scores, features, examples)
    assert predictions.answers == [0, 1, 0, 2]
    expected = {"id": 3, "choice": 2, "option": "d", "probabilities": pytest.approx([0, 0, 1], abs=1e-3)}
    assert kind.records(predictions)[3] == expected
