"""The scripts of docs/studies on small models: their numbers are those of the models and of `ernie-gram predict`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ernie_gram.api import Model
from ernie_gram.formats.registry import write_model
from ernie_gram.inference.texts import TextEncoder
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.predict import main as predict
from tasks.registry import TASKS
from tests.support.commands import call
from tests.support.exported_models import random_model
from tests.support.finetuned_runs import made_run
from tests.support.small_model import TOKENS
from tests.support.static_programs import fresh_scope
from tests.support.studies import study
from tests.support.task_files import write

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


def chunks(tags: list[str]) -> set[tuple[str, int, int]]:
    """Return the entities of IOB2 tags: type, start, end."""
    found, start = set(), 0
    for i, tag in enumerate([*tags, "O"]):
        if i and tags[i - 1] != "O" and not tag.startswith("I-"):
            found.add((tags[i - 1][2:], start, i))
        if tag.startswith("B-"):
            start = i
    return found


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
            expected, predicted = (chunks([column[i] for column in columns]) for i in (-2, -1))
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


def test_attention_of_a_text_is_that_of_the_model(tmp_path: Path) -> None:
    write_model(
        random_model(None, use_relative_position=True, vocab_size=TOKENS), tmp_path / "model", "ernie_gram", True
    )
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
