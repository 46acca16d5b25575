"""From rows to examples: every check of a row's values."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tasks.kinds.catalog import KINDS
from tasks.kinds.checked_values import BadRow, OmittedRow, Reading
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.span_answers import Answer, SpanExample
from tasks.kinds.tagging import TaggingExample
from tasks.kinds.task import Task
from tasks.layouts.benchmarks import Race
from tasks.layouts.lines import JsonLines
from tasks.layouts.rows import CharSpan, Place, Row
from tasks.layouts.tables import Tsv
from tasks.metrics.entities import Entity
from tests.support.task_files import files

PLACE = Place(Path("t"), 3)


def task(kind: str, **fields: Any) -> Task:
    metric = KINDS[kind].metrics[0]
    defaults = {"name": "t", "title": "T", "language": "en", "layout": Tsv({}), "splits": {"train": files("t")}}
    return Task(kind=kind, metric=metric, **{**defaults, **fields})


def make(of: Task, labelled: bool = True, training: bool = True, **values: Any) -> Any:
    return KINDS[of.kind].read_example(Row(PLACE, values), "0", Reading(of, labelled, training))


def notes_of(of: Task, training: bool = True, **values: Any) -> dict[str, int]:
    """Return what is noted of a row with gold values."""
    reading = Reading(of, True, training)
    KINDS[of.kind].read_example(Row(PLACE, values), "0", reading)
    return dict(reading.notes)


NLI = task("classification", labels=("yes", "no"), label_aliases={"ja": "yes"}, omitted_labels=("-",))
SCORES = task("regression", score_range=(0.0, 5.0))
CHOICE = task("multiple_choice")
SPAN = task("span")
SPAN_V2 = task("span", unanswerable=True)
NER = task("tagging", labels=("PER", "LOC"))


def test_a_label_has_the_official_spelling_and_a_score_is_in_its_range() -> None:
    example = SentenceExample("0", "a", "b", "yes", PLACE)
    assert make(NLI, text_a="a", text_b="b", label="ja") == example
    assert make(NLI, text_a="a", text_b="b", label=" yes") == example
    assert make(NLI, text_a="a", label="no", id=7) == SentenceExample("7", "a", None, "no", PLACE)
    assert make(NLI, labelled=False, text_a="a") == SentenceExample("0", "a", None, None, PLACE)
    numbers = task("classification", labels=("0", "1", "true"))
    assert [make(numbers, text_a="a", label=label).gold for label in (0, "1", True)] == ["0", "1", "true"]
    with pytest.raises(OmittedRow):
        make(NLI, text_a="", label="-")
    assert make(SCORES, text_a="a", score="4.750") == SentenceExample("0", "a", None, 4.75, PLACE)
    for bad in ("5.1", "-1"):
        with pytest.raises(BadRow, match="is not between 0 and 5"):
            make(SCORES, text_a="a", score=bad)
    for bad in ("x", "nan", "inf", "", None, True):
        with pytest.raises(BadRow, match="is not a number"):
            make(SCORES, text_a="a", score=bad)


def test_an_answer_is_an_index_a_text_or_a_letter_and_the_first_of_equal_options() -> None:
    expected = MultipleChoiceExample("0", "c", "q", ("x", "y"), 1, PLACE)
    for answer in (1, "y", "B", "1"):
        assert make(CHOICE, context="c", question="q", options=["x", "y"], answer=answer) == expected
    assert make(CHOICE, labelled=False, context="c", options=["x", "y"]).answer is None
    assert make(CHOICE, context="c", options=["x", "y", "y"], answer="y").answer == 1
    assert make(CHOICE, context="c", options=["0", "1", "5"], answer="1").answer == 1  # the text and the number agree
    assert make(CHOICE, context="c", options=["3", "2", "1"], answer="B").answer == 1
    lines = dataclasses.replace(CHOICE, layout=JsonLines({}))
    assert make(lines, context="c", options=["x", "y", "z"], answer=2).answer == 2
    with pytest.raises(BadRow, match="the answer '2' "):
        make(lines, context="c", options=["1", "2", "3"], answer=2)
    assert make(CHOICE, context="c", options=["1", "2", "3"], answer=2).answer == 2  # an index, as from C3's files


def test_an_underscore_in_a_question_is_a_gap_in_race_only() -> None:
    """Whatever the layout of the row is: texts to predict may come as JSON lines."""
    race = task("multiple_choice", layout=Race())
    for of, question, has_gaps in ((race, "he _ .", True), (race, "why ?", False), (CHOICE, "max_len ?", False)):
        assert make(of, context="c", question=question, options=["x", "y"], answer=0).has_gaps is has_gaps


def test_empty_texts_are_read_where_official_files_have_them() -> None:
    official = dataclasses.replace(NLI, empty_texts=True)
    assert make(official, text_a="a", text_b="", label="no").text_b == ""
    assert make(NLI, labelled=False, text_a=" ").gold is None
    assert make(CHOICE, context="c", options=["x", ""], answer=0).options == ("x", "")


def test_answers_have_their_place_in_the_context_in_a_list_or_an_object_of_two_lists() -> None:
    answers = [{"text": "b", "answer_start": 2}, {"text": "c", "answer_start": 1}, {"text": "a", "answer_start": -1}]
    example = make(SPAN, id="q", context="a b c a", question="?", answers=[*answers, "b c"])
    spans = (CharSpan(2, 3), CharSpan(4, 5), CharSpan(0, 1), CharSpan(2, 5))
    assert example == SpanExample("q", "a b c a", "?", tuple(map(Answer, ("b", "c", "a", "b c"), spans)), False, PLACE)
    given = {"text": ["b", "a"], "answer_start": [4, 0]}
    example = make(SPAN, context="a b b", question="?", answers=given)
    assert example.answers == (Answer("b", CharSpan(4, 5)), Answer("a", CharSpan(0, 1)))
    assert make(SPAN_V2, context="a", question="?", answers={"text": [], "answer_start": []}).is_impossible
    for bad in ({"text": ["b", "a"], "answer_start": [4]}, {"text": ["a"]}, {"text": ["a"], "answer_start": 0}):
        with pytest.raises(BadRow, match="answer_start"):
            make(SPAN, context="a b b", question="?", answers=bad)


def test_a_place_of_an_answer_that_is_not_the_given_one_or_not_the_only_one_is_noted() -> None:
    def noted(answer: Any, training: bool = True) -> dict[str, int]:
        return notes_of(SPAN, training, context="aaa b", question="?", answers=[answer])

    for answer in ("aa", {"text": "aa"}, {"text": "aa", "answer_start": -1}):
        assert noted(answer) == {
            "answers without answer_start that occur more than once: the first place counts": 1,
            **({"answers at another position than answer_start": 1} if str(answer).endswith("-1}") else {}),
        }
    assert noted({"text": "aa", "answer_start": 1}) == noted("b") == noted("aa", training=False) == {}
    assert noted({"text": "b", "answer_start": 3}) == {"answers at another position than answer_start": 1}


def test_a_training_question_needs_one_answer_in_the_context() -> None:
    with pytest.raises(BadRow, match="the answer 'x' is not in the context"):
        make(SPAN, context="abc", question="?", answers=["x", "y"])
    answers = make(SPAN, context="abc", question="?", answers=["x", "b"]).answers
    assert answers == (Answer("x", None), Answer("b", CharSpan(1, 2)))
    # Scorers compare texts, of other files too.
    answers = make(SPAN, training=False, context="abc", question=" ", answers=["x", ""]).answers
    assert answers == (Answer("x", None), Answer("", None))


def test_questions_without_answer_are_for_tasks_that_have_them() -> None:
    impossible = {"context": "c", "question": "?", "answers": [], "is_impossible": True}
    assert make(SPAN_V2, **impossible) == SpanExample("0", "c", "?", (), True, PLACE)
    for values in (impossible, {**impossible, "is_impossible": False}):
        with pytest.raises(BadRow, match="the task has no questions without answer"):
            make(SPAN, **values)
    assert make(SPAN, labelled=False, context="c", question="?").answers is None


@pytest.mark.parametrize(("no", "yes"), [(False, True), ("false", "true"), ("False", " TRUE"), ("0", "1"), (0, 1)])
def test_truth_values_of_tables_are_texts(no: Any, yes: Any) -> None:
    row = {"context": "abc", "question": "?", "answers": ["b"]}
    answers = (Answer("b", CharSpan(1, 2)),)
    assert make(SPAN_V2, is_impossible=no, **row) == SpanExample("0", "abc", "?", answers, False, PLACE)
    assert make(SPAN_V2, is_impossible=yes, **row) == SpanExample("0", "abc", "?", (), True, PLACE)


@pytest.mark.parametrize("answers", [[""], "", [" "], ["", ""], [{"text": "", "answer_start": 0}]])
def test_an_empty_answer_is_none_if_questions_may_have_none(answers: Any) -> None:
    row = {"context": "abc", "question": "?", "answers": answers}
    for training in (True, False):
        example = make(SPAN_V2, training=training, **row)
        assert (example.answers, example.is_impossible) == ((), True)
    assert make(SPAN_V2, **{**row, "answers": ["b", ""]}).is_impossible is False
    # DuReader-robust has one in its dev file.
    assert make(SPAN, training=False, **{**row, "answers": [""]}).answers == (Answer("", None),)
    with pytest.raises(BadRow, match="the answer '' is not in the context"):
        make(SPAN, **{**row, "answers": [""]})


def test_tags_become_iob2_and_entities_and_entities_of_a_text_tags() -> None:
    example = make(NER, tokens=["New", "York", "and", "Ann"], tags=["I-LOC", "I-LOC", "O", "I-PER"])
    entities = (Entity("LOC", 0, 2), Entity("PER", 3, 4))
    tokens = ("New", "York", "and", "Ann")
    assert example == TaggingExample("0", tokens, " ", ("B-LOC", "I-LOC", "O", "B-PER"), entities, PLACE)
    assert example.text == "New York and Ann"
    assert [example.text[slice(*span)] for span in example.token_spans()] == list(tokens)
    chinese = dataclasses.replace(NER, language="zh")
    example = make(chinese, tokens=["上", "\u3000", "海"], tags=["B-LOC", "O", "O"])
    assert (example.text, example.separator) == ("上\u3000海", "")
    assert make(chinese, labelled=False, tokens=["上"]).tags is None
    given = [("PER", 3, 4, "d"), ("LOC", 0, 3, "abc"), ("PER", 1, 2, "b"), ("PER", 0, 1, "e")]
    example = make(NER, text="abcde", entities=given)
    assert example.tokens == tuple("abcde")
    assert example.tags == ("B-LOC", "I-LOC", "I-LOC", "B-PER", "B-PER")
    assert example.entities == (Entity("LOC", 0, 3), Entity("PER", 1, 2), Entity("PER", 3, 4), Entity("PER", 4, 5))
    moved = {"entities at another position than given": 1}
    assert notes_of(NER, text="abcde", entities=[("PER", 2, 3, "b")]) == moved
    overlapping = [("PER", 0, 2, "ab"), ("LOC", 1, 2, "b")]
    assert notes_of(NER, text="abcde", entities=overlapping) == {"texts with overlapping entities": 1}


BAD: dict[str, tuple[Task, dict[str, Any], list[tuple[dict[str, Any], str]]]] = {
    "NLI": (
        NLI,
        {},
        [
            ({"text_a": "a", "label": "yess"}, "the label 'yess' .*did you mean yes"),
            ({"text_a": "a", "label": ""}, "the label is empty"),
            ({"text_a": "a"}, "the label is missing"),
            ({"text_a": "a", "label": 1.5}, "the label .*1.5"),
            ({"text_a": "a", "label": "y\tes"}, "the label .*a tab"),
            ({"text_a": " \t\u3000", "label": "no"}, "text_a is empty"),
            ({"text_a": "a", "text_b": "", "label": "no"}, "text_b is empty"),
            ({"text_a": None, "label": "no"}, "text_a is missing"),
            ({"text_a": ["a"], "label": "no"}, "text_a is not a text"),
            ({"text_a": "a\ud800", "label": "no"}, "text_a is not UTF-8"),
            ({"text_a": "a", "label": "no", "id": True}, "the id is not a text"),
        ],
    ),
    "CHOICE": (
        CHOICE,
        {"context": "c", "options": ["x", "y"]},
        [
            ({"answer": 2}, "the answer 2 is none"),
            ({"answer": -1}, "the answer -1 is none"),
            ({"answer": True}, "the answer True is none"),
            ({"answer": "C"}, "the answer 'C' is none"),
            ({"answer": None}, "the answer None is none"),
            ({"answer": "1", "options": ["1", "2", "0"]}, "the answer '1' is the text of one option"),
            ({"answer": "A", "options": ["B", "A"]}, "the answer 'A' is the text of one option"),
            ({"answer": 0, "options": ["x"]}, "1 options"),
            ({"answer": 0, "options": ["x"] * 27}, "27 options"),
            ({"answer": 0, "id": "a\tb"}, "the id .*a tab"),
            ({"answer": 0, "options": ["x", 2]}, r"options\[1\]"),
            ({"answer": 0, "options": "xy"}, "options is not a list"),
            ({"answer": 0, "options": None}, "options is missing"),
            ({"answer": 0, "context": " "}, "context is empty"),
        ],
    ),
    "SPAN": (
        SPAN,
        {"context": "abc", "question": "?", "answers": ["a"]},
        [
            ({"context": None}, "context is missing"),
            ({"question": 3}, "question is not a text"),
            ({"answers": [{"answer_start": 0}]}, "the answer is missing"),
            ({"answers": [{"text": "a", "answer_start": "0"}]}, "answer_start is '0'"),
            ({"is_impossible": "no"}, "is_impossible is 'no'"),
            ({"is_impossible": 1.0}, "is_impossible is 1.0"),
            ({"is_impossible": None}, "is_impossible is None"),
        ],
    ),
    "NER": (
        NER,
        {},
        [
            ({"tokens": ["a"], "tags": ["O", "O"]}, "1 tokens but 2 tags"),
            ({"tokens": ["a", ""], "tags": ["O", "O"]}, r"tokens\[1\] is empty"),
            ({"tokens": [" "], "tags": ["O"]}, "the text is empty"),
            ({"tokens": [], "tags": []}, "the text is empty"),
            ({"tokens": "ab", "tags": ["O"]}, "tokens is not a list"),
            ({"tags": ["O"]}, "tokens is missing"),
            ({"tokens": ["a"], "tags": ["B-ORG"]}, "'ORG'"),
            ({"tokens": ["a"], "tags": ["Q"]}, "'Q'"),
            # Numbers without names.
            ({"tokens": ["a", "b"], "tags": [3, 0]}, "'0' .*label_aliases"),
            ({"tokens": ["a", "b"], "tags": [3, "O"]}, "tags"),
            ({"tokens": ["a"]}, "tags is missing"),
            ({"text": "ab", "entities": [("PER", 0, 1, "c")]}, "the entity 'c'"),
            ({"text": "\u200b", "entities": []}, "text is empty"),
        ],
    ),
}


@pytest.mark.parametrize(
    ("of", "values", "message"),
    [(of, {**base, **values}, message) for of, base, rows in BAD.values() for values, message in rows],
)
def test_bad_rows_say_what_is_wrong(of: Task, values: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRow, match=message):
        make(of, **values)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Mr. García, of U.N.", ("Mr", ".", "García", ",", "of", "U", ".", "N", ".")),
        ("हिन्दी में", ("हिन्दी", "में")),
        ("co\u00adop \u4eac\u90fd", ("co\u00adop", "京", "都")),
    ],
)
def test_a_text_is_split_into_the_words_of_the_tokenizer(text: str, tokens: tuple[str, ...]) -> None:
    """Marks and joiners are no words of their own, as they would be for `\\w`."""
    example = make(NER, labelled=False, text=text)
    assert example.tokens == tokens
    assert "".join(text[slice(*span)] for span in example.token_spans()) == "".join(tokens)
