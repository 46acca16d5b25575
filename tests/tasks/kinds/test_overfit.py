"""Each kind learns a few examples by heart with a tiny model, through the programs of training and prediction.

Predictions are made in batches of one, three and the remaining samples.
"""

from __future__ import annotations

from typing import Any

from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import HeadSettings, InputSettings, KindSettings
from tasks.kinds.span_answers import Answer, SpanExample
from tasks.kinds.tagging import TaggingExample
from tasks.layouts.rows import CharSpan
from tasks.metrics.entities import entities_of, to_iob2
from tests.support.further_cases import FURTHER
from tests.support.own_tasks import KNOWN
from tests.tasks.kinds.tiny import PLACE, overfit


def kind(task: str, **sections: Any) -> Kind[Any, Any]:
    return kind_of(KNOWN[task], KindSettings(**sections))


def test_classification_learns_its_examples() -> None:
    mnli = kind("mnli")
    labels = mnli.task.labels
    examples = [
        SentenceExample(str(i), "a b c d"[: 1 + 2 * (i % 4)], "x y"[: 1 + 2 * (i // 4)], labels[i % 3], PLACE)
        for i in range(8)
    ]
    predictions, losses, parameters = overfit(mnli, examples)
    assert mnli.evaluate(predictions) == {"accuracy": 1.0}
    assert losses[-1] < 0.1 < losses[0]
    assert {"cls_out_w", "cls_out_b", "pooled_fc.w_0"} <= {*parameters}


def test_multi_label_classification_learns_its_examples() -> None:
    moods = kind("moods", head=HeadSettings(sentence_output="cls", dropout=0.0))
    labels = moods.classes
    examples = [
        SentenceExample(str(i), "xyz"[i % 3], "abc"[i // 3], tuple(labels[: i % 3] + labels[2 : 2 + i // 6]), PLACE)
        for i in range(9)
    ]
    predictions, losses, _ = overfit(moods, examples, steps=80)
    scores = moods.evaluate(predictions)
    assert scores["accuracy"] == scores["micro_f1"] == scores["macro_f1"] == 1.0
    assert losses[-1] < 0.1 < losses[0]


def test_regression_learns_its_examples() -> None:
    stsb = kind("stsb", head=HeadSettings(sentence_output="cls", dropout=0.0))
    examples = [SentenceExample(str(i), "a b c d"[: 1 + 2 * (i % 4)], "xyz"[i // 4], i * 0.6, PLACE) for i in range(8)]
    predictions, losses, _ = overfit(stsb, examples, steps=80)
    assert stsb.evaluate(predictions)["pearson"] > 0.99
    assert losses[-1] < 0.1


def test_multiple_choice_learns_uneven_options() -> None:
    race = kind("race", head=HeadSettings(option_loss_weight=0.5))
    examples = [
        MultipleChoiceExample(f"high{i}", "a b c", "d _ ?" if i % 2 else "e", tuple("fghi"[: 2 + i % 3]), i % 2, PLACE)
        for i in range(8)
    ]
    predictions, losses, _ = overfit(race, examples)
    assert race.evaluate(predictions)["accuracy"] == 1.0
    assert losses[-1] < 0.2


def span_examples(with_impossible: bool) -> list[SpanExample]:
    examples = []
    for i in range(8):
        context = " ".join("abcdefghijklm"[i:] + "wxyz"[: i % 4])
        impossible = with_impossible and i % 3 == 0
        start = 2 * (i % 4)
        answers = () if impossible else (Answer(context[start : start + 3], CharSpan(start, start + 3)),)
        examples.append(SpanExample(f"q{i}", context, "xy z"[: 1 + i % 4], answers, impossible, PLACE))
    return examples


def test_span_extraction_learns_its_examples_in_windows() -> None:
    squad = kind("squad1", input=InputSettings(max_seq_len=14, max_query_len=4, doc_stride=3))
    examples = span_examples(with_impossible=False)
    predictions, _, parameters = overfit(squad, examples, steps=120, has_lm_transform=True)
    assert squad.evaluate(predictions)["exact_match"] == 100.0
    assert {"cls_mrc_out_w", "cls_mrc_out_b", "mask_lm_trans_fc.w_0"} <= {*parameters}
    assert "mask_lm_trans_layer_norm_scale" not in parameters


@FURTHER
def test_span_extraction_learns_unanswerable_questions() -> None:
    squad = kind("squad2", head=HeadSettings(lm_transform=False))
    examples = span_examples(with_impossible=True)
    predictions, _, parameters = overfit(squad, examples, steps=100, has_lm_transform=True)
    scores = squad.evaluate(predictions)
    assert scores["f1"] == scores["best_f1"] == scores["exact"] == 100.0
    assert [answer == "" for answer in predictions.answers] == [i % 3 == 0 for i in range(8)]
    assert "mask_lm_trans_fc.w_0" not in parameters


def test_tagging_learns_its_examples_in_windows() -> None:
    conll = kind("conll2003", input=InputSettings(max_seq_len=8, max_query_len=4, doc_stride=2))
    words = ("ab", "c", "def", "g", "hi", "j", "klm")
    tag_of = dict(zip(words, ("B-PER", "I-PER", "O", "B-LOC", "O", "I-LOC", "O"), strict=True))
    examples = []
    for i in range(8):
        tokens = (words[i % 7 :] + words[: i % 7])[: 2 + i % 6]
        tags = to_iob2([tag_of[token] for token in tokens])
        examples.append(TaggingExample(str(i), tokens, " ", tags, entities_of(tags), PLACE))
    predictions, _, parameters = overfit(conll, examples, steps=100)
    assert conll.evaluate(predictions)["f1"] == 100.0
    assert {"cls_seq_label_out_w", "cls_seq_label_out_b"} <= {*parameters}
