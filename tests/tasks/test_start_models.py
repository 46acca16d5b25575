"""Fine-tuning from models of other software: sentencepiece, and the transform of a language model under the head.

Each run is trained by the command, read back, and must predict what its evaluation found.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import transform_shapes
from ernie_gram.formats.registry import read_model, write_model
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo, NGrams
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.training.finetuned import load_finetuned
from tests.support.commands import call
from tests.support.further_cases import FURTHER
from tests.support.given_model import BERT, given_bert
from tests.support.model_folders import random_arrays, random_model
from tests.support.own_tasks import own_task
from tests.support.static_programs import fresh_scope
from tests.support.tiny_task import SETTINGS, TOKENS, finetune, rows

WORDPIECE = WordPieceVocabulary(TOKENS, True, "tiny")


def predict(run: Path, data: Path, output: Path) -> Any:
    """Return the scores of the dev split that `python -m tasks.predict` prints."""
    from tasks.predict import main

    with fresh_scope():
        done = call(main, str(run), *("--data", str(data), "--split", "dev", "--output", str(output))).ok()
    return json.loads(done.stdout.splitlines()[-1])


def test_a_model_folder_with_sentencepiece_is_fine_tuned(tiny_task: Path, tmp_path: Path) -> None:
    vocabulary = train_sentencepiece([text for text, _ in rows(60, seed=2)], 40, True)
    # The words of Chinese text are those of the corpus.
    counted = LexiconInfo(vocabulary.fingerprint, "jieba", "", {}, {}, 8, 0, 1)
    lexicon = Lexicon(NGrams.from_texts(["the cat"], np.array([2]), np.array([1.0])), counted)
    given = given_bert(vocabulary, config=replace(BERT, vocab_size=len(vocabulary)), lexicon=lexicon)
    write_model(given, tmp_path / "model", "ernie_gram")
    run = tmp_path / "run"
    finetune(tiny_task, run, f"--paths.model={tmp_path / 'model'}", "--optimizer.epochs=1").ok()
    again = read_model(run).vocabulary
    assert isinstance(again, SentencePieceVocabulary)
    assert again.fingerprint == vocabulary.fingerprint
    assert load_finetuned(run).tokenizer.segmenter == "jieba"
    scores = json.loads((run / "result.json").read_text())["scores"]["dev"]
    assert predict(run, tiny_task / "data", tmp_path / "dev.tsv") == scores


def tied_transform() -> ModelRecord:
    """Return a model with a whole head over tokens, whose transform has a LayerNorm."""
    return random_model(with_head=True, vocabulary=WORDPIECE, vocab_size=len(TOKENS))


def low_rank_transform() -> ModelRecord:
    """Return a model with the transform of a low-rank head, and nothing else of it."""
    model = random_model(vocabulary=WORDPIECE, vocab_size=len(TOKENS), out_emb_size=8)
    transform = random_arrays(transform_shapes(model.config))
    return replace(model, parameters=model.parameters | transform)


@pytest.mark.parametrize(
    ("kind", "given"), [("span", tied_transform()), pytest.param("tagging", low_rank_transform(), marks=FURTHER)]
)
def test_the_transform_of_the_given_model_is_trained_under_the_head(
    kind: str, given: ModelRecord, tmp_path: Path
) -> None:
    write_model(given, tmp_path / "model", "ernie_gram")
    task, run = own_task(tmp_path / "data", kind), tmp_path / "run"
    from tasks.finetune import main

    settings = [option for option in SETTINGS if "sentence_output" not in option]
    paths = {"model": tmp_path / "model", "data": tmp_path / "data", "output": run}
    with fresh_scope():
        options = [*settings, "--input.max_query_len=4", "--optimizer.epochs=1"]
        done = call(main, f"--task={task}", *options, *(f"--paths.{name}={path}" for name, path in paths.items())).ok()
    output = {"span": "cls_mrc_out", "tagging": "cls_seq_label_out"}[kind]
    assert f"drawn: {output}_b, {output}_w" in done.stdout
    parameters = read_model(run).parameters
    transform = [name for name in given.parameters if name.startswith("mask_lm_trans")]
    assert len(transform) == {"span": 4, "tagging": 2}[kind]
    assert all(not np.array_equal(parameters[name], given.parameters[name]) for name in transform)
    scores = json.loads((run / "result.json").read_text())["scores"]["dev"]
    assert predict(run, tmp_path / "data", tmp_path / "predictions") == scores
