"""The scripts of docs/studies on small models: their numbers are those of the models and of `ernie-gram predict`.

Recall of entities by length and by groups of sentences: counts made by hand, and intervals known from statistics.
Tables: the numbers of the published ones again.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import numpy as np
import paddle
import pytest

from ernie_gram.api import Model
from ernie_gram.formats.registry import write_model
from ernie_gram.inference.texts import TextEncoder
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.metrics.entities import Entity, entities_of
from tasks.predict import main as predict
from tasks.registry import TASKS
from tests.support.commands import ROOT, call
from tests.support.exported_models import random_model
from tests.support.finetuned_runs import made_run
from tests.support.small_model import TOKENS
from tests.support.static_programs import fresh_scope
from tests.support.task_files import write


def study(name: str) -> ModuleType:
    """Return the module of the script docs/studies/NAME.py; its folder comes first, as for a script."""
    with patch.object(sys, "path", [str(ROOT / "docs" / "studies"), *sys.path]):
        return import_module(name)


# As in a process of its own.
pytestmark = pytest.mark.usefixtures("dynamic_mode")

SENTENCES = [
    ("the O", "cat I-PER", "sat I-PER", "on O", "a I-LOC", "mat I-LOC", "home I-LOC"),
    ("it O", "ran O"),
    ("dog I-ORG", "ran O", "now I-LOC", "then B-LOC"),
    ("cats I-PER", ". O"),
] * 6
TEXT = "di ba be  bi du bo Bu du ga de do"
ENTITIES = [(2, 4), (6, 8)]  # "ba be" and "bo Bu" after [CLS] and "di"
WORDS = ("new", "york", "##er", "##shire", "in", "a", "the", "city", "of", ".", "北", "京", "大", "学")


def test_recall_of_entities_is_that_of_the_file_that_predict_writes(tmp_path: Path) -> None:
    rows = ["\n".join(line.replace(" ", " X X ") for line in sentence) for sentence in SENTENCES]
    data = write(tmp_path / "data" / "eng.testa", "\n\n".join(rows) + "\n").parent
    task = TASKS["conll2003"]
    runs = [made_run(tmp_path / "one", task), made_run(tmp_path / "other", task, num_hidden_layers=1)]
    output = tmp_path / "recall"
    call(study("entity_recall").main, *map(str, runs), "--data", str(data), "--output", str(output)).ok()
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    content = json.loads(output.with_suffix(".json").read_text())
    by_length = {row["length"]: row for row in content["tables"][0]["rows"]}
    some = 0
    for run in runs:
        path = tmp_path / f"{run.name}.txt"
        with fresh_scope():
            call(predict, str(run), "--data", str(data), "--split", "dev", "--output", str(path)).ok()
        gold, found = Counter[int](), Counter[int]()
        for block in path.read_text("utf-8").strip().split("\n\n"):
            columns = [line.split() for line in block.splitlines()]
            expected, predicted = ({*entities_of([column[i] for column in columns])} for i in (-2, -1))
            gold.update(end - start for _, start, end in expected)
            found.update(end - start for _, start, end in expected & predicted)
        assert gold == {1: 24, 2: 6, 3: 6}
        for name, row in by_length.items():
            lengths = [1, 2, 3] if name == "all" else [int(name)]
            count, right = (sum(each[length] for length in lengths) for each in (gold, found))
            assert row["entities"] == count
            assert row["recall"][run.name]["mean"] == pytest.approx(100 * right / count)
            some += right
    assert some
    paddle.disable_static()  # as it was before the command


def test_attention_of_a_text_is_that_of_the_model(tmp_path: Path) -> None:
    model = random_model(None, use_relative_position=True, vocab_size=TOKENS)
    write_model(model, tmp_path / "model", "ernie_gram", True)
    output = ("--output", str(tmp_path / "found"))
    expected = Model.load(tmp_path / "model").attention(TEXT)
    attention = study("attention")
    for layer in (-1, 0):
        given = ("--text", TEXT, "--entities", "ba be", "BO BU", "--layer", str(layer))
        call(attention.main, str(tmp_path / "model"), *given, *output).ok()
        content = json.loads((tmp_path / "found.json").read_text())
        assert (content["tokens"], list(map(tuple, content["entities"]))) == (expected.tokens, ENTITIES)
        np.testing.assert_allclose(content["weights"], expected.weights[layer], atol=1e-6)
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")


def test_entities_are_found_wherever_they_occur_as_whole_words() -> None:
    spans = study("attention").phrase_spans
    model = SimpleNamespace(texts=TextEncoder(WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS]), "char", 64))
    text = "A New  York city in new york ."
    assert spans(model, text, ["new york", "city"]) == [(2, 4), (4, 5), (6, 8)]
    assert spans(model, "new yorker in yorkshire", ["new yorker"]) == [(1, 4)]
    assert spans(model, text, ["in", "in"]) == [(5, 6)]
    assert spans(model, text, []) == []
    assert spans(model, "北京大学", ["北京", "京大学"]) == [(1, 3), (2, 5)]
    # All unknown words have one ID.
    for text, absent in (("the new yorker", "new york"), ("the new yorker", "york"), ("the ☃ city", "€")):
        with pytest.raises(ValueError, match=absent):
            spans(model, text, [absent])


LOC, PER = "LOC", "PER"
STUDY = study("entity_recall")
Column, recalls = STUDY.Column, STUDY.recalls
columns_by_group, columns_by_length = STUDY.columns_by_group, STUDY.columns_by_length
GOLD = [
    [Entity(PER, 0, 2), Entity(LOC, 4, 5)],
    [],
    [Entity(LOC, 0, 5), Entity(LOC, 6, 9), Entity(PER, 9, 10)],
    [Entity(PER, 1, 2)],
]
ONE = [
    [Entity(PER, 0, 2), Entity(LOC, 4, 6)],  # the second one ends elsewhere
    [Entity(LOC, 0, 1)],
    [Entity(LOC, 0, 5), Entity(PER, 6, 9), Entity(PER, 9, 10)],  # the second one has another type
    [],
]
OTHER = [*GOLD[:3], []]


def sentence_of(*lengths: int) -> list[Entity]:
    """Return entities with these lengths, one after another."""
    ends = np.cumsum(lengths)
    return [Entity(LOC, int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True)]


def test_recall_is_the_mean_over_runs_of_the_same_name_with_differences_to_the_first() -> None:
    columns = columns_by_length(GOLD, [ONE, OTHER], longest=3)
    gold = {column.name: column.gold.tolist() for column in columns}
    assert gold == {"all": [2, 0, 3, 1], "1": [1, 0, 1, 1], "2": [1, 0, 0, 0], "3+": [0, 0, 2, 0]}
    first, second = ({column.name: column.found[run].tolist() for column in columns} for run in range(2))
    assert first == {"all": [1, 0, 2, 0], "1": [0, 0, 1, 0], "2": [1, 0, 0, 0], "3+": [0, 0, 1, 0]}
    assert second == {name: [*counts[:3], 0] for name, counts in gold.items()}
    columns = columns_by_length(GOLD, [ONE, OTHER, ONE], longest=3)
    rows = recalls(columns, ["a", "b", "a"])
    assert [(row["length"], row["sentences"], row["entities"]) for row in rows][:2] == [("all", 3, 6), ("1", 3, 3)]
    found = {name: [row["recall"][name] for row in rows] for name in rows[0]["recall"]}
    assert list(found) == ["a", "b"]
    assert [cell["runs"] for cell in found["a"]] == [
        pytest.approx([100 * share] * 2) for share in (1 / 2, 1 / 3, 1, 1 / 2)
    ]
    assert [cell["mean"] for cell in found["b"]] == pytest.approx([100 * 5 / 6, 100 * 2 / 3, 100, 100])
    assert [cell["difference"] for cell in found["a"]] == [None] * 4
    expected = [100 / 3, 100 / 3, 0, 50]
    assert [cell["difference"][0] for cell in found["b"] if cell["difference"]] == pytest.approx(expected)
    mixed = recalls(columns, ["a", "a", "a"])[0]["recall"]["a"]
    assert (mixed["mean"], mixed["runs"]) == (pytest.approx(1100 / 18), pytest.approx([50, 500 / 6, 50]))


def test_sentences_are_grouped_by_the_average_length_of_their_entities() -> None:
    lengths = [(1,), (2,), (1, 2), (), (3,), (1, 1), (4, 8), (2, 2), (1, 2), (1,), (1, 1, 2)]
    gold = [sentence_of(*each) for each in lengths]
    everything = columns_by_length(gold, [gold], 4)[0]
    groups = columns_by_group(gold, everything)
    members = {column.name: np.flatnonzero(column.gold).tolist() for column in groups}
    # Ten sentences, so two for a group, but the three with the average 1 stay together. Then 7 are left for 4 groups.
    assert members == {"1": [0, 5, 9], "1.33": [10], "1.5": [2, 8], "2": [1, 7], "3 to 6": [4, 6]}
    for column in groups:
        np.testing.assert_array_equal(column.found[0], column.gold)
    assert [column.gold.sum() for column in groups] == [4, 3, 4, 3, 3]


def test_intervals_are_those_of_a_binomial_and_paired_for_differences() -> None:
    random = np.random.default_rng(3)
    size, share = 2000, 0.3
    gold = np.ones(size, np.int64)
    first = (random.random(size) < share).astype(np.int64)
    # The second model finds the same, and 40 more.
    second = first.copy()
    second[np.flatnonzero(first == 0)[:40]] = 1
    column = Column("all", gold, np.stack([first, second]))
    one, other = recalls([column], ["one", "other"])[0]["recall"].values()
    p = first.mean()
    half = 100 * 1.96 * np.sqrt(p * (1 - p) / size)
    assert [one["low"], one["high"]] == pytest.approx([100 * p - half, 100 * p + half], abs=0.15 * half)
    half = 100 * 1.96 * np.sqrt(0.02 * 0.98 / size)
    assert other["difference"] == pytest.approx([2, 2 - half, 2 + half], abs=0.15 * half)
    # Of two runs of a model that find the opposite, the mean does not vary.
    both = recalls([Column("all", gold, np.stack([first, 1 - first]))], ["one", "one"])[0]["recall"]["one"]
    assert [both["low"], both["high"]] == pytest.approx([50, 50])


tables = study("tables")
# A mean with its deviation, or with its range, or the mean of differences with its range.
CELL = re.compile(
    r"\d+\.\d ± \d+\.\d|\d[\d,.]* \(\d[\d,.]* - \d[\d,.]*\)|[+-]\d+\.\d+(?: %)? \([+-]\d+\.\d+ to [+-]\d+\.\d+\)"
)


def test_the_published_tables_are_made_again() -> None:
    """Every such cell in the tables of the page of results is in the tables that are made.

    Left out are the ratios to counts, which the page has in addition.
    """
    made = "\n".join(tables.report(tables.read_study(path.stem)) for path in tables.HERE.glob("*.yaml"))
    # The page has one digit of the mean over the tasks, rounded from more than the two digits that are made.
    found = {
        re.sub(r"\d+\.\d\d", lambda number, more=more: f"{float(number[0]) + more:.1f}", cell)
        for more in (-0.004, 0, 0.004)
        for cell in CELL.findall(made)
    }
    page = (ROOT / "docs" / "results.md").read_text("utf-8").replace("*", "")
    cells = [cell for line in page.splitlines() if line.startswith("| ") for cell in CELL.findall(line)]
    published = {cell for cell in cells if not re.match(r"\d\.\d\d", cell)}
    assert len(published) > 100
    assert published - found == set()


def test_at_equal_cpu_time_logarithms_of_perplexities_are_interpolated() -> None:
    """Equal CPU time is that of the cheapest whole pre-training; a model of one step does not count."""
    curve = [{"step": step, "ngram_perplexity": value} for step, value in ((0, 900.0), (10, 100.0))]
    costs = {"cheap": (1.0, 10), "dear": (2.0, 10), "random": (0.1, 1)}
    models = {name: [{"curve": curve, "result": {tables.CPU: x, "steps": n}}] for name, (x, n) in costs.items()}
    made_up = object.__new__(tables.Study)
    made_up.models = models
    assert made_up.equal_cpu_seconds() == 10
    assert [made_up.at_cpu_seconds(name, 10) for name in ("cheap", "dear")] == [
        [pytest.approx(100)],
        [pytest.approx(300)],
    ]


def test_the_script_writes_tables_and_figures(tmp_path: Path) -> None:
    with patch.object(sys, "argv", ["tables.py", "precision", "--output", str(tmp_path)]):
        tables.main()
    names = ["precision.md", "precision_perplexities.png", "precision_scores.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / names[1]).read_bytes().startswith(b"\x89PNG")
    assert "| explicit | float32 |" in (tmp_path / names[0]).read_text("utf-8")
