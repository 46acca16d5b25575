"""Span extraction: inputs and answers of windows against a slow reference, and the search against all spans."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from reader.errors import InputError
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import InputSettings, KindSettings, SpanSettings
from tasks.kinds.span import Span
from tasks.kinds.span_answers import Answer, SpanExample
from tasks.layouts.rows import CharSpan
from tasks.registry import TASKS
from tests.tasks.kinds.test_features import reference_owner, reference_windows
from tests.tasks.kinds.tiny import LETTERS, PLACE, checked_batch, gold_scores, tokenizer

INPUT = InputSettings(max_seq_len=16, max_query_len=3, doc_stride=4)


def span_kind(task: str, inputs: InputSettings = INPUT, **span: Any) -> Span:
    return kind_of(TASKS[task], KindSettings(inputs, SpanSettings(**span)))


def example_of(rng: random.Random, name: str, impossible: bool = False) -> SpanExample:
    """Return a context of words of one to three letters; the answer begins and ends at edges of words."""
    words = ["".join(rng.choice(LETTERS) for _ in range(rng.choice([1, 1, 2, 3]))) for _ in range(rng.randint(1, 24))]
    context = " ".join(words)
    question = " ".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 6)))
    first = rng.randrange(len(words))
    stop = min(len(words), first + rng.randint(1, 3))
    start = len(" ".join(words[:first])) + (first > 0)
    text = " ".join(words[first:stop])
    answers = () if impossible else (Answer("elsewhere", None), Answer(text, CharSpan(start, start + len(text))))
    return SpanExample(name, context, question, answers, impossible, PLACE)


def pieces(text: str) -> list[tuple[str, int]]:
    """Return the tokens of a text of letters and spaces, and their characters."""
    return [
        (letter if i == 0 or text[i - 1] == " " else f"##{letter}", i) for i, letter in enumerate(text) if letter != " "
    ]


@pytest.mark.parametrize("without_answer", ["cls", "drop"])
def test_windows_and_answers_are_those_of_a_slow_reference(without_answer: str) -> None:
    rng = random.Random(6)
    examples = [example_of(rng, str(i), impossible=i % 5 == 0) for i in range(80)]
    kind = span_kind("squad2", windows_without_answer=without_answer)
    features = kind.encode(examples, tokenizer(), training=True)
    expected, dropped = [], 0
    for index, example in enumerate(examples):
        question = [token for token, _ in pieces(example.question)][:3]
        tokens = pieces(example.context)
        for start, length in reference_windows(len(tokens), 13 - len(question), 4):
            window = tokens[start : start + length]
            answer = [0, 0]
            if not example.is_impossible:
                span = example.answers[1].span
                inside = [i for i, (_, place) in enumerate(tokens) if span.start <= place < span.end]
                if start <= inside[0] and inside[-1] < start + length:
                    answer = [len(question) + 2 + i - start for i in (inside[0], inside[-1])]
                elif without_answer == "drop":
                    dropped += 1
                    continue
            text = ["[CLS]", *question, "[SEP]", *(token for token, _ in window), "[SEP]"]
            second = text.index("[SEP]") + 1
            expected.append((index, text, [0, *range(second, len(text) - 1)], answer))
    assert len(features) == len(expected)
    assert features.counts["windows left out of training"] == dropped
    assert (dropped > 0) == (without_answer == "drop")
    sizes = [(len(pieces(example.question)), len(pieces(example.context))) for example in examples]
    predicted = kind.encode(examples, tokenizer(), training=False)
    assert {name: count for name, count in predicted.counts.items() if count} == {
        "examples longer than an input": sum(context > 13 - min(question, 3) for question, context in sizes),
        "truncated questions": sum(question > 3 for question, _ in sizes),
    }
    shortest = np.argsort(features.lengths)[:4]
    assert features.lengths[shortest].max() < 16
    for samples in (np.random.default_rng(0).permutation(len(features)), shortest):
        batch = checked_batch(features, samples, expected)
        for row, (_, text, slots, answer) in enumerate(expected[sample] for sample in samples):
            assert [batch["start_slots"][row], batch["end_slots"][row]] == answer
            sentences = [slots[1] <= slot < len(text) for slot in range(batch["input_ids"].shape[1])]
            assert batch["sentence_ids"][row].tolist() == sentences
        if without_answer == "cls":  # all windows are used, as in prediction
            assert "slots" in checked_batch(predicted, samples, expected)


def brute_force(
    scores: np.ndarray, context: str, question_tokens: int, max_length: int, by_characters: bool
) -> tuple[list[tuple[str, float]], float]:
    """Return all answers in order, with the score of each, and the score of "no answer"."""
    tokens = pieces(context)
    windows = reference_windows(len(tokens), 13 - min(3, question_tokens), 4)
    unit, spans, nulls = 0, [], []
    for number, (start, length) in enumerate(windows):
        nulls.append(float(scores[unit].sum()))
        window = scores[unit + 1 : unit + 1 + length].astype(np.float64)
        unit += 1 + length
        for first in range(length):
            if reference_owner(start + first, windows) != number:
                continue
            for last in range(first, length):
                begin, end = tokens[start + first][1], tokens[start + last][1] + 1
                if (end - begin if by_characters else last - first + 1) <= max_length:
                    spans.append((-(window[first, 0] + window[last, 1]), begin, end))
    answers: dict[str, float] = {}
    for score, begin, end in sorted(spans):
        answers.setdefault(context[begin:end], -score)
    return list(answers.items()), min(nulls)


@pytest.mark.parametrize("task", ["squad2", "cmrc2018"])
@pytest.mark.parametrize("decimals", [0, 6])
def test_decoding_finds_the_best_of_all_spans(task: str, decimals: int) -> None:
    rng, random_numbers = random.Random(7), np.random.default_rng(7)
    examples = [example_of(rng, str(i)) for i in range(60)]
    kind = span_kind(task, n_best=4, max_answer_length=5, null_threshold=0.5)
    features = kind.encode(examples, tokenizer(), training=False)
    # Rounding to whole numbers makes most scores equal to others.
    scores = np.round(random_numbers.standard_normal((features.num_units, 2)), decimals).astype(np.float32)
    predictions = kind.decode(scores, features, examples)
    assert list(predictions.for_metric) == [example.id for example in examples]
    bounds = np.searchsorted(features.example_of, np.arange(len(examples) + 1))
    for index, example in enumerate(examples):
        units = slice(features.unit_offsets[bounds[index]], features.unit_offsets[bounds[index + 1]])
        expected, null = brute_force(
            scores[units], example.context, len(pieces(example.question)), 5, task == "cmrc2018"
        )
        found = predictions.details[index]["n_best"]
        assert [(each["text"], each["score"]) for each in found] == expected[:4]
        assert all(example.context.startswith(each["text"], each["start"]) for each in found)
        assert sum(each["probability"] for each in found) == pytest.approx(1)
        assert predictions.for_metric[example.id] == expected[0][0]
        if task == "squad2":
            difference = null - expected[0][1]
            assert predictions.details[index]["na_score"] == pytest.approx(difference, abs=1e-6)
            assert predictions.answers[index] == ("" if difference > 0.5 else expected[0][0])


def test_gold_positions_give_the_gold_texts_and_the_best_scores() -> None:
    rng = random.Random(8)
    examples = [example_of(rng, str(i), impossible=i % 4 == 0) for i in range(80)]
    # The first token of an answer has at least 8 tokens to its right in the window to which it belongs.
    inputs = InputSettings(max_seq_len=33, max_query_len=3, doc_stride=9)
    kind = span_kind("squad2", inputs)
    features = kind.encode(examples, tokenizer(), training=False)
    predictions = kind.decode(gold_scores(features, examples), features, examples)
    assert predictions.answers == ["" if each.is_impossible else each.answers[1].text for each in examples]
    scores = kind.evaluate(predictions)
    assert scores["f1"] == scores["exact"] == scores["best_f1"] == 100.0
    answerable = [example for example in examples if not example.is_impossible]
    for task in ("squad1", "cmrc2018", "dureader_robust"):
        kind = span_kind(task, inputs)
        features = kind.encode(answerable, tokenizer(), training=False)
        scores = kind.evaluate(kind.decode(gold_scores(features, answerable), features, answerable))
        assert scores["f1"] == 100.0


def test_the_best_threshold_is_found_on_labelled_questions() -> None:
    examples = [
        SpanExample(str(i), "c d", "q", () if impossible else (Answer("c", CharSpan(0, 1)),), impossible, PLACE)
        for i, impossible in enumerate([False, True, True])
    ]
    kind = span_kind("squad2")
    features = kind.encode(examples, tokenizer(), training=False)
    # Units: [CLS] c d. The score of "c" is 2 everywhere, that of "no answer" differs.
    scores = np.tile(np.array([[0, 0], [2, 0], [0, 0]], np.float32), (3, 1))
    scores[[0, 3, 6], 0] = [5, 6, 7]
    predictions = kind.decode(scores, features, examples)
    assert [detail["na_score"] for detail in predictions.details] == [3.0, 4.0, 5.0]
    assert predictions.answers == ["c", "", ""]
    assert kind.evaluate(predictions)["f1"] == kind.evaluate(predictions)["best_f1"] == 100.0
    # If "no answer" is best for all questions, the official script's threshold 0 would answer the first one.
    scores[[0, 3, 6], 0] = [1.5, 1.6, 1.7]
    impossible = [SpanExample(each.id, each.context, each.question, (), True, PLACE) for each in examples]
    predictions = kind.decode(scores, features, impossible)
    assert predictions.answers == ["", "", ""]
    assert kind.evaluate(predictions)["f1"] == 100.0


def test_a_context_without_tokens_has_no_answer_and_an_answer_without_is_left_out_of_training() -> None:
    example = SpanExample("0", "\u200b", "q", None, None, PLACE)
    for task in ("squad1", "squad2"):
        kind = span_kind(task)
        features = kind.encode([example], tokenizer(), training=False)
        predictions = kind.decode(np.zeros((1, 2), np.float32), features, [example])
        assert predictions.answers == [""]
        assert predictions.details[0]["n_best"] == []
    example = SpanExample("0", "a \u200b b", "q", (Answer("\u200b", CharSpan(2, 3)),), False, PLACE)
    features = span_kind("squad1").encode([example], tokenizer(), training=True)
    assert len(features) == 0
    assert features.counts["windows left out of training"] == features.counts["answers in no window"] == 1


@pytest.mark.parametrize(("stride", "missing"), [(12, 1), (10, 0)])
def test_answers_in_no_window_are_counted(stride: int, missing: int) -> None:
    """A window has 12 tokens of the context; the first answer crosses the end of the first window."""
    context = " ".join("abcdefghijklmnop")
    answers = [Answer(text, CharSpan(at := context.index(text), at + len(text))) for text in ("l m", "b c")]
    examples = [SpanExample(answer.text, context, "q", (answer,), False, PLACE) for answer in answers]
    examples.append(SpanExample("none", context, "q", (), True, PLACE))
    inputs = InputSettings(max_seq_len=16, max_query_len=3, doc_stride=stride)
    features = span_kind("squad2", inputs).encode(examples, tokenizer(), training=True)
    assert features.counts["answers in no window"] == missing


def test_a_question_must_leave_room_for_its_context() -> None:
    """Only span extraction reads max_query_len, so other tasks may have shorter inputs."""
    settings = KindSettings(InputSettings(16, max_query_len=13))
    with pytest.raises(InputError, match=r"^input.max_query_len: "):
        kind_of(TASKS["squad1"], settings)
    kind_of(TASKS["cola"], settings)
